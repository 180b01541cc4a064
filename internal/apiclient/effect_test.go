package apiclient

import (
	"testing"

	kjson "sigs.k8s.io/json"
)

func TestOurOwnEffectIsRecognized(t *testing.T) {
	for name, test := range map[string]struct {
		object, asked    string
		created, patched bool // whether it counts as the effect of a creation, and of a patch
	}{
		"all of it":            {`{"a":1,"b":[{"c":"x"}]}`, `{"a":1,"b":[{"c":"x"}]}`, true, true},
		"more than that":       {`{"a":1,"b":[{"c":"x","default":1}],"d":1}`, `{"a":1,"b":[{"c":"x"}]}`, true, true},
		"less than that":       {`{"b":[{"c":"x"}]}`, `{"a":1,"b":[{"c":"x"}]}`, false, false},
		"another value":        {`{"a":2}`, `{"a":1}`, false, false},
		"the same number":      {`{"a":1.0}`, `{"a":1}`, true, true},
		"another long number":  {`{"a":9007199254740993}`, `{"a":9007199254740992}`, false, false},
		"another type":         {`{"a":"1"}`, `{"a":1}`, false, false},
		"an object for a list": {`{"a":{}}`, `{"a":[1]}`, false, false},
		"a list for an object": {`{"a":[]}`, `{"a":{"b":1}}`, false, false},
		"more items":           {`{"a":[1,2]}`, `{"a":[1]}`, false, false},
		"null and nothing":     {`{}`, `{"a":null}`, true, true},
		"null and something":   {`{"a":1}`, `{"a":null}`, false, false},
		"nested nulls":         {`{}`, `{"a":{"b":null}}`, true, true},
		"empty and nothing":    {`{}`, `{"a":"","b":0,"c":false,"d":[],"e":{"f":""}}`, true, false},
		"empty and something":  {`{"a":"x"}`, `{"a":""}`, false, false},
		"the empty object":     {`{}`, `{"a":{}}`, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			object, asked := parsed(t, test.object), parsed(t, test.asked)
			if got := has(object, asked, isEmpty); got != test.created {
				t.Errorf("of a creation: got %v", got)
			}
			if got := has(object, asked, isNull); got != test.patched {
				t.Errorf("of a patch: got %v", got)
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
