package call

import (
	"reflect"
	"strings"
	"testing"

	"gopf.dev/gopf/diff"
)

func TestOutputsAreParsed(t *testing.T) {
	yes := "yes"
	for text, want := range map[string]Output{
		"":     {},
		"null": {},
		"{}":   {},
		`{"patch": null, "labels": null, "events": null, "wait": null, "deny": null, "result": null}`: {},
		`{"patch": {"spec": {"n": 1, "f": 1.5, "big": 9007199254740993}}}`:                            {Patch: map[string]any{"spec": map[string]any{"n": int64(1), "f": 1.5, "big": int64(9007199254740993)}}},
		`{"labels": {"a": "yes", "b": null}, "annotations": {}}`:                                      {Labels: map[string]*string{"a": &yes, "b": nil}, Annotations: map[string]*string{}},
		`{"result": [1, null]}`: {Result: []any{int64(1), nil}},
		`{"children": [{"a": 1}, null], "apply": [], "delete": [{}]}`:               {Children: []map[string]any{{"a": int64(1)}, nil}, Apply: []map[string]any{}, Delete: []map[string]any{{}}},
		`{"events": [{"type": "Normal", "reason": "R", "message": "m"}, {}]}`:       {Events: []Event{{"Normal", "R", "m"}, {}}},
		`{"warnings": ["yes", null], "memo": {"b": 1, "a": 2}, "permanent": "yes"}`: {Warnings: []string{"yes", ""}, Memo: []byte(`{"a":2,"b":1}`), Permanent: &yes},
		`{"memo": null}`: {Memo: []byte("null")},
		`{"wait": {"after": 90, "message": "m"}}`:  {Wait: &Delay{After: 90e9, Message: "m"}},
		`{"retry": {"after": "2m", "error": "e"}}`: {Retry: &Delay{After: 120e9, Error: "e"}},
		`{"retry": {}}`:   {Retry: &Delay{}},
		`{"deny": "yes"}`: {Deny: &yes},
	} {
		got, err := ParseOutput([]byte(text))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v (%v)", text, got, want, err)
		}
	}
}

func TestMistakesInOutputsAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                                "not a JSON object",
		`{} x`:                              "not a JSON object",
		`{"patsh": {}}`:                     `unknown key "patsh" (did you mean "patch"?)`,
		`{"patch": []}`:                     "patch: [] is not an object",
		`{"status": "x"}`:                   `status: "x" is not an object`,
		`{"labels": {"a": 1}}`:              "labels: a: 1 is not a text",
		`{"children": {}}`:                  "children: {} is not a list",
		`{"apply": [{}, 1]}`:                "apply: item 1: 1 is not an object",
		`{"events": [{"reason": true}]}`:    "events: item 0: reason: true is not a text",
		`{"warnings": [1]}`:                 "warnings: item 0: 1 is not a text",
		`{"wait": 5}`:                       "wait: 5 is not an object",
		`{"wait": {"after": "x"}}`:          `wait: after: "x" is not a duration`,
		`{"wait": {"after": -1}}`:           "wait: after: -1 is not a duration",
		`{"retry": {"after": [], "id": 1}}`: "retry: after: [] is not a duration",
		`{"deny": {}}`:                      "deny: {} is not a text",
		`{"deny": "x", "permanent": "x"}`:   "more than one of wait, retry, permanent and deny",
		`{"patch": "` + strings.Repeat("x", 1000) + `"}`: "x… is not an object",
	} {
		_, err := ParseOutput([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 200 {
			t.Errorf("%.60s: got %v, want %s", text, err, want)
		}
	}
}

// A handler may return a long text of an object. Its copies would multiply the memory.
func TestOutputsShareTheirTexts(t *testing.T) {
	long := strings.Repeat("<", 4<<20)
	fields := map[string]any{"patch": map[string]any{"a": long}, "labels": map[string]any{"a": long}, "deny": long, "warnings": []any{long}, "events": []any{map[string]any{"message": long}}}
	result := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			if _, err := OutputOf(fields); err != nil {
				b.Fatal(err)
			}
		}
	})
	if n := result.AllocedBytesPerOp(); n > 64<<10 {
		t.Errorf("an output with long texts allocates %d KiB", n>>10)
	}
}

func TestChangesHaveTheFormOfKopf(t *testing.T) {
	changes := Changes{{Op: diff.Change, Path: []string{"a", "<b>"}, Old: int64(1), New: "<&>"}, {Op: diff.Add, New: map[string]any{"c": nil}}}
	want := `{"v":0,"handler":"","retry":0,"diff":[["change",["a","<b>"],1,"<&>"],["add",[],null,{"c":null}]]}` + "\n"
	if got, err := Encode(Input{Diff: changes}); err != nil || string(got) != want {
		t.Errorf("got %s, want %s (%v)", got, want, err)
	}
	if got, err := Encode(Input{Diff: Changes{}}); err != nil || strings.Contains(string(got), "diff") {
		t.Errorf("got %s (%v)", got, err)
	}
}
