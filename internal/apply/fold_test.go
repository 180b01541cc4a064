package apply

import (
	"reflect"
	"testing"

	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
)

// phase sets a field of the status.
func phase(fields map[string]any) {
	status, ok := fields["status"].(map[string]any)
	if !ok {
		status = map[string]any{}
		fields["status"] = status
	}
	status["phase"] = "Ready"
	delete(status, "reason")
}

func TestEditsOfTheStatusHaveTheEffectOfOtherEdits(t *testing.T) {
	for _, raw := range []string{
		`{"metadata": {"name": "x"}, "spec": {"a": 1}}`,
		`{"metadata": {"name": "x"}, "status": null}`,
		`{"metadata": {"name": "x"}, "status": {"reason": "new", "list": [1]}}`,
		`{"metadata": {"name": "x"}, "status": {"phase": "Ready"}}`,
	} {
		for name, merge := range map[string]map[string]any{
			"alone": {}, "with a change": {"spec": map[string]any{"a": int64(2)}, "status": map[string]any{"reason": "old", "b": int64(3)}},
		} {
			body, err := object.Parse([]byte(raw))
			if err != nil {
				t.Fatal(err)
			}
			var whole, part patch.Patch
			whole.Merge(merge)
			part.Merge(merge)
			whole.Edit(phase)
			part.EditStatus(phase)
			if got, want := fold(body.Undecoded(), &part).Fields(), fold(body, &whole).Fields(); !reflect.DeepEqual(got, want) {
				t.Errorf("%s, %s: got %v, want %v", raw, name, got, want)
			}
		}
	}
}

func TestEditsOfTheStatusDecodeNothingElse(t *testing.T) {
	body, err := object.Parse([]byte(`{"metadata": {"name": "x"}, "spec": {"a": [1, 2, 3, {"b": "c"}]}, "status": {"reason": "new"}}`))
	if err != nil {
		t.Fatal(err)
	}
	var both patch.Patch
	var seen map[string]any
	look := func(fields map[string]any) { seen = fields }
	both.EditStatus(look)
	fold(body, &both)
	if len(seen) != 1 || seen["status"] == nil {
		t.Errorf("the edit got %v", seen)
	}
	other := &patch.Patch{}
	other.Edit(look)
	both.Absorb(other)
	fold(body, &both)
	if seen["spec"] == nil {
		t.Errorf("an edit of the whole object got %v", seen)
	}
}
