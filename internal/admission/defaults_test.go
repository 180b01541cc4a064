package admission

import "testing"

func TestEntriesAreComparedWithTheServersDefaults(t *testing.T) {
	wanted := func() Entry {
		return Entry{"name": "check.auto.kopf.dev", "rules": []any{}, "objectSelector": nil, "failurePolicy": "Fail"}
	}
	tests := map[string]struct {
		present Entry
		want    bool
	}{
		"as sent":                 {wanted(), true},
		"without empty rules":     {Entry{"name": "check.auto.kopf.dev", "failurePolicy": "Fail"}, true},
		"with defaults":           {Entry{"name": "check.auto.kopf.dev", "failurePolicy": "Fail", "objectSelector": map[string]any{}, "namespaceSelector": map[string]any{}, "reinvocationPolicy": "Never"}, true},
		"another policy":          {Entry{"name": "check.auto.kopf.dev", "failurePolicy": "Ignore"}, false},
		"reinvoked":               {Entry{"name": "check.auto.kopf.dev", "failurePolicy": "Fail", "reinvocationPolicy": "IfNeeded"}, false},
		"rules of another client": {Entry{"name": "check.auto.kopf.dev", "failurePolicy": "Fail", "rules": []any{map[string]any{}}}, false},
		"another object selector": {Entry{"name": "check.auto.kopf.dev", "failurePolicy": "Fail", "objectSelector": map[string]any{"matchLabels": map[string]any{"a": "b"}}}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := asWanted([]any{test.present}, []Entry{wanted()}, "auto.kopf.dev", true); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
