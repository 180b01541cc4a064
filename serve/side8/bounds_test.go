package side8

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
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
