package apply

import (
	"errors"
	"testing"

	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
)

func TestABoundChangeIsSentOnlyIfItFitsTheObject(t *testing.T) {
	version := func(want ...string) func(*object.Body) bool {
		return func(now *object.Body) bool {
			for _, v := range want {
				if now.ResourceVersion == v {
					return true
				}
			}
			return false
		}
	}
	for name, c := range map[string]struct {
		touched bool // another client writes between the read and the write
		bound   func(*object.Body) bool
		f       Finalizer
		made    bool
	}{
		"unchanged":                            {bound: version("1"), made: true},
		"changed, but it fits":                 {touched: true, bound: version("1", "2"), made: true},
		"changed, and it does not fit":         {touched: true, bound: version("1")},
		"it does not fit from the start":       {bound: version("0")},
		"with a finalizer":                     {touched: true, bound: version("1", "2"), f: Finalizer{Name: "f", Add: true}, made: true},
		"with a finalizer, it does not fit":    {touched: true, bound: version("1"), f: Finalizer{Name: "f", Add: true}},
		"not bound, so other changes are fine": {touched: true, made: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			body := s.body()
			if c.touched {
				s.touch()
			}
			a := s.applier()
			a.Bound = c.bound
			notes := &patch.Patch{}
			notes.Set("done", "metadata", "annotations", "record")
			after, err := a.Apply(t.Context(), body, &patch.Patch{}, notes, c.f)
			annotations, _ := s.object["metadata"].(map[string]any)["annotations"].(map[string]any)
			if made := annotations["record"] == "done"; made != c.made || errors.Is(err, ErrSuperseded) == c.made {
				t.Errorf("made: %v, want %v; the error is %v", made, c.made, err)
			}
			if after.ResourceVersion != s.version() {
				t.Errorf("got the version %s, want %s", after.ResourceVersion, s.version())
			}
		})
	}
}
