package object

import (
	"fmt"
	"testing"
)

func TestContentIsAllButTheVersionAndManagedFields(t *testing.T) {
	object := func(version, annotations, managed, data string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{%s},"managedFields":[%s],"name":"a","resourceVersion":"%s","uid":"u"},"data":{%s}}`,
			annotations, managed, version, data)
	}
	base := object("5", `"a":"b"`, `{"manager":"x"}`, `"k":"v"`)
	for name, test := range map[string]struct {
		json string
		same bool
	}{
		"the same":              {base, true},
		"another version":       {object("66", `"a":"b"`, `{"manager":"x"}`, `"k":"v"`), true},
		"other managedFields":   {object("6", `"a":"b"`, `{"manager":"longer"}`, `"k":"v"`), true},
		"no managedFields":      {object("6", `"a":"b"`, ``, `"k":"v"`), true},
		"other data":            {object("6", `"a":"b"`, `{"manager":"x"}`, `"k":"w"`), false},
		"another annotation":    {object("6", `"a":"c"`, `{"manager":"x"}`, `"k":"v"`), false},
		"a version in the data": {object("6", `"a":"b"`, `{"manager":"x"}`, `"resourceVersion":"6"`), false},
	} {
		for _, parse := range []func([]byte) (*Body, error){Parse, ParseWhole} {
			one, err := parse([]byte(base))
			if err != nil {
				t.Fatal(err)
			}
			other, err := parse([]byte(test.json))
			if err != nil {
				t.Fatal(err)
			}
			if same := one.SameContent(other); same != test.same {
				t.Errorf("%s: the same content: %t, want %t", name, same, test.same)
			}
			if same := one.ContentHash() == other.ContentHash(); same != test.same {
				t.Errorf("%s: the same hash: %t, want %t", name, same, test.same)
			}
		}
	}
}

// A client may set an annotation to the version that its write will get.
func TestAnAnnotationNamedAsTheVersionHidesNoChange(t *testing.T) {
	object := func(annotation, version, data string) *Body {
		b, err := Parse(fmt.Appendf(nil, `{"metadata":{"annotations":{"resourceVersion":"%s"},"name":"a","resourceVersion":"%s","uid":"u"},"data":{"k":"%s"}}`, annotation, version, data))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if object("5", "5", "v").SameContent(object("6", "6", "v")) {
		t.Error("another annotation is the same content")
	}
	if object("5", "5", "v").SameContent(object("5", "6", "w")) {
		t.Error("other data is the same content")
	}
}
