package formats_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func (s situation) checkQuiet(t *testing.T, st *stage, how strictness) {
	t.Helper()
	if diff := cmp.Diff(s.resumed, st.diary.all()); diff != "" {
		t.Errorf("calls at the restart: -want +got\n%s", diff)
	}
	if writes := st.writes(); len(writes) > s.writes && (how == strict || len(s.then) == 0) {
		t.Errorf("a restart wrote %d times, want %d: %s %s", len(writes), s.writes, writes[0].Path, writes[0].Body)
	}
}

func (s situation) checkCalls(t *testing.T, st *stage, how strictness) {
	t.Helper()
	got := st.diary.all()
	want := slices.Concat(s.resumed, s.then, s.afterwards)
	if how == lenient && len(got) == len(want)-len(s.afterwards) {
		want = want[:len(got)]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("all calls after the restart: -want +got\n%s", diff)
	}
}

// checkEnd checks that the handling is complete and its records are gone.
func (s situation) checkEnd(t *testing.T, st *stage) {
	t.Helper()
	obj, exists := st.lookup()
	if exists != (s.base != gone) {
		t.Errorf("in the end, the object exists: %t", exists)
	}
	if !exists {
		return
	}
	if s.moved && moved(obj) {
		obj.SetAnnotations(nil) // they are ignored, and removed with the next write of the metadata
	}
	for key, value := range obj.GetAnnotations() {
		if key != s.foreign && strings.Contains(value, `"retries":`) {
			t.Errorf("a record is left in the annotation %s: %s", key, value)
		}
	}
	raw, err := obj.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(raw, []byte(`"purpose":`)) {
		t.Errorf("a record is left in the status: %v", obj.Object["status"])
	}
	if s.base == "" {
		return
	}
	text := fmt.Sprintf(`"field":%q`, s.base)
	if !bytes.Contains(raw, []byte(strings.ReplaceAll(text, `"`, `\"`))) {
		t.Errorf("the base does not have %s: %v %v", text, obj.GetAnnotations(), obj.Object["status"])
	}
}

// moved reports whether the state of the object was moved to the status.
func moved(obj *unstructured.Unstructured) bool {
	_, noted, _ := unstructured.NestedString(obj.Object, "status", "things", "moved")
	return noted
}
