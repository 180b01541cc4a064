package patch

import (
	"testing"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/jsonvalue"
)

func TestInverseRestoresTheFieldsOfAPatch(t *testing.T) {
	type fields = map[string]any
	for name, c := range map[string]struct{ merge, before, since, want fields }{
		"nothing":                             {fields{}, fields{"a": "1"}, fields{}, fields{"a": "1"}},
		"a value":                             {fields{"a": "2"}, fields{"a": "1"}, fields{}, fields{"a": "1"}},
		"a new value":                         {fields{"b": "2"}, fields{"a": "1"}, fields{}, fields{"a": "1"}},
		"a deletion":                          {fields{"a": nil}, fields{"a": "1"}, fields{}, fields{"a": "1"}},
		"a deletion of nothing":               {fields{"b": nil}, fields{"a": "1"}, fields{}, fields{"a": "1"}},
		"inside of an object":                 {fields{"o": fields{"a": "2", "b": "3"}}, fields{"o": fields{"a": "1", "c": "4"}}, fields{}, fields{"o": fields{"a": "1", "c": "4"}}},
		"a list":                              {fields{"l": []any{"x"}}, fields{"l": []any{"y", "z"}}, fields{}, fields{"l": []any{"y", "z"}}},
		"a field changed since":               {fields{"a": "2", "b": "2"}, fields{"a": "1", "b": "1"}, fields{"a": "3"}, fields{"a": "3", "b": "1"}},
		"a field deleted since":               {fields{"a": "2"}, fields{"a": "1"}, fields{"a": nil}, fields{}},
		"an object that became a text since":  {fields{"o": fields{"a": nil}}, fields{"o": fields{"a": "1"}}, fields{"o": "text"}, fields{"o": "text"}},
		"an object that was deleted since":    {fields{"o": fields{"a": nil}}, fields{"o": fields{"a": "1"}}, fields{"o": nil}, fields{}},
		"a value that became an object since": {fields{"a": "2"}, fields{"a": "1"}, fields{"a": fields{"b": "3"}}, fields{"a": fields{"b": "3"}}},
		"a deleted field set since":           {fields{"a": nil}, fields{"a": "1"}, fields{"a": "3"}, fields{"a": "3"}},
	} {
		t.Run(name, func(t *testing.T) {
			now := jsonvalue.Clone(c.before).(map[string]any)
			Apply(now, c.merge)
			Apply(now, c.since)
			Apply(now, Inverse(c.merge, c.before, now))
			if !diff.Equal(now, c.want) {
				t.Errorf("got %v, want %v", now, c.want)
			}
		})
	}
}
