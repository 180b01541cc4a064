package recorder

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"gopf.dev/gopf/internal/object"
)

// Handlers may use texts of objects as the type and the reason. Kubernetes refuses longer reasons.
func TestLongTextsOfEventsAreCut(t *testing.T) {
	long := strings.Repeat("aж", 1<<20)
	for name, c := range map[string]struct {
		text         string
		kind, reason int // the lengths in bytes
	}{
		"short":         {"Made", 4, 4},
		"as allowed":    {strings.Repeat("a", 63), 63, 63},
		"long":          {strings.Repeat("a", 1000), 63, 128},
		"long, wide":    {long, 63, 127},
		"wide at first": {"ж" + long, 63, 128},
	} {
		t.Run(name, func(t *testing.T) {
			a := &api{}
			run(t, a, func(p *Poster) {
				synctest.Wait()
				p.Post(Event{about, c.text, c.text, "told"})
				p.mu.Lock()
				kept := 0
				p.seen.DeleteFunc(func(e Event, _ *repeated) bool { kept += len(e.Type) + len(e.Reason); return false })
				p.mu.Unlock()
				if kept > c.kind+c.reason {
					t.Errorf("%d bytes are kept", kept)
				}
				synctest.Wait()
				if len(a.taken) != 1 {
					t.Errorf("posted: %q", a.posted)
				}
			})
			body := Config{}.Body(Event{object.Identity{Name: "x"}, c.text, c.text, "told"}, time.Time{})
			kind, reason := body["type"].(string), body["reason"].(string)
			if len(kind) != c.kind || len(reason) != c.reason || !utf8.ValidString(kind+reason) || !strings.HasPrefix(c.text, reason) || !strings.HasPrefix(reason, kind) {
				t.Errorf("the type has %d bytes, the reason %d: %q, %q", len(kind), len(reason), kind, reason)
			}
		})
	}
}
