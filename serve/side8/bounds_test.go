package side8

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// A tenant chooses the keys of its objects, and the name of a variable has all keys on its
// path.
func TestVariablesOfAnObjectAreLimited(t *testing.T) {
	object := map[string]any{"spec": map[string]any{strings.Repeat("k", 20<<10): make([]any, 40<<10)}} // 800 MB of names
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Variables(object)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrLarge) {
		t.Errorf("got the error %v", err)
	}
	if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 64 {
		t.Errorf("it took %d MiB", used)
	}
	if _, err := Variables(map[string]any{"spec": map[string]any{"text": strings.Repeat("x", 1<<20)}}); err != nil {
		t.Errorf("an object of 1 MiB: %v", err)
	}
}

// A tenant could use these characters to make the variable K8S six times as large.
func TestTheVariableOfTheWholeObjectHasNoEscapesOfHTML(t *testing.T) {
	env, err := Variables(map[string]any{"text": "<&>"})
	if want := `K8S={"text":"<&>"}`; err != nil || !slices.Contains(env, want) {
		t.Errorf("got %q, %v; want %s", env, err, want)
	}
}

// A script may print texts of its object. As JSON, the first output would take 300 GB.
func TestAliasesInTheOutputOfAScriptAreLimited(t *testing.T) {
	for name, output := range map[string]string{
		"a large value":  "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 300_000) + "]",
		"many values":    "- &a [" + strings.Repeat("1,", 1000) + "]\n- &b [" + strings.Repeat("*a,", 100) + "]\n- [" + strings.Repeat("*b,", 100) + "]",
		"many levels":    strings.Repeat("[", 2000) + strings.Repeat("]", 2000),
		"a value itself": "&a [*a]",
	} {
		began := time.Now()
		got, err := Parse([]byte(output))
		if err == nil || time.Since(began) > 10*time.Second {
			t.Errorf("%s: got %.60v, %v", name, got, err)
		}
	}
	got, err := Parse([]byte("a: &a {b: 1}\nc: [*a, *a]"))
	if want := "map[a:map[b:1] c:[map[b:1] map[b:1]]]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("got %v, %v", got, err)
	}
}

// A tenant chooses all fields of its object, except for its identity.
func TestOtherFieldsCannotReplaceTheIdentityOfAnObject(t *testing.T) {
	_, values, err := Environment([]byte(`{"Metadata": {"name": "victim"}, "kind": "Thing", "metadata": {"name": "mine", "namespace": "here"},
		"KIND": "Secret", "metadata_name": "victim", "metadata": {"name": "mine", "namespace": "here"}, "metadata_namespace": "there", "metadata_other": "x",
		"spec": {"metadata_name": "free"}, "spec_a": 1, "Spec_a": 2}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"K8S_METADATA_NAME": "mine", "K8S_METADATA_NAMESPACE": "here", "K8S_KIND": "Thing",
		"K8S_METADATA_OTHER": "x", "K8S_SPEC_METADATA_NAME": "free", "K8S_SPEC_A": "2",
	} {
		if values[name] != want {
			t.Errorf("%s is %q, want %q", name, values[name], want)
		}
	}
}
