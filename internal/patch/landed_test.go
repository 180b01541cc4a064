package patch

import (
	"testing"

	kjson "sigs.k8s.io/json"
)

func TestLandedWriteIsRecognized(t *testing.T) {
	for name, test := range map[string]struct {
		object, write             string
		exact, defaulted, created bool // whether it counts as the effect under each rule
	}{
		"all of it":                {`{"a":1,"b":[{"c":"x"}]}`, `{"a":1,"b":[{"c":"x"}]}`, true, true, true},
		"more fields":              {`{"a":1,"b":{"c":"x","d":1},"e":1}`, `{"a":1,"b":{"c":"x"}}`, true, true, true},
		"more fields in an item":   {`{"a":1,"b":[{"c":"x","default":1}],"d":1}`, `{"a":1,"b":[{"c":"x"}]}`, false, true, true},
		"less than that":           {`{"b":[{"c":"x"}]}`, `{"a":1,"b":[{"c":"x"}]}`, false, false, false},
		"another value":            {`{"a":2}`, `{"a":1}`, false, false, false},
		"another value in an item": {`{"a":[{"b":2}]}`, `{"a":[{"b":1}]}`, false, false, false},
		"the same number":          {`{"a":1.0}`, `{"a":1}`, true, true, true},
		"another long number":      {`{"a":9007199254740993}`, `{"a":9007199254740992}`, false, false, false},
		"another type":             {`{"a":"1"}`, `{"a":1}`, false, false, false},
		"an object for a list":     {`{"a":{}}`, `{"a":[1]}`, false, false, false},
		"a list for an object":     {`{"a":[]}`, `{"a":{"b":1}}`, false, false, false},
		"a value for an object":    {`{"a":1}`, `{"a":{"b":null}}`, false, false, false},
		"an object for a value":    {`{"a":{"b":1}}`, `{"a":1}`, false, false, false},
		"more items":               {`{"a":[1,2]}`, `{"a":[1]}`, false, false, false},
		"fewer items":              {`{"a":[1]}`, `{"a":[1,2]}`, false, false, false},
		"no list":                  {`{}`, `{"a":[1]}`, false, false, false},
		"null and nothing":         {`{}`, `{"a":null}`, true, true, true},
		"null and something":       {`{"a":1}`, `{"a":null}`, false, false, false},
		"nested nulls":             {`{}`, `{"a":{"b":null}}`, true, true, true},
		"nested null and value":    {`{}`, `{"a":{"b":null,"c":1}}`, false, false, false},
		"a null in an item":        {`{"a":[{"b":1}]}`, `{"a":[{"b":1,"c":null}]}`, false, true, true},
		"empty and nothing":        {`{}`, `{"a":"","b":0,"c":false,"d":[],"e":{"f":""}}`, false, false, true},
		"empty list and nothing":   {`{}`, `{"a":[]}`, false, false, true},
		"empty and something":      {`{"a":"x"}`, `{"a":""}`, false, false, false},
		"the empty object":         {`{}`, `{"a":{}}`, false, false, true},
		"the empty write":          {`{"a":1}`, `{}`, true, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			object, write := parsed(t, test.object), parsed(t, test.write)
			for rule, want := range map[Rule]bool{Exact: test.exact, Defaulted: test.defaulted, Created: test.created} {
				if got := Landed(write, object, rule); got != want {
					t.Errorf("rule %d: got %v", rule, got)
				}
			}
		})
	}
}

func parsed(t *testing.T, text string) (fields map[string]any) {
	t.Helper()
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}
