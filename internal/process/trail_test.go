package process

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"gopf.dev/gopf/internal/execute"
)

// steps is a [Trail] that keeps the steps as texts.
type steps struct{ all []string }

func (s *steps) add(uid, text string) { s.all = append(s.all, uid+" "+text) }

func (s *steps) Turned(uid, why string, _ time.Time) { s.add(uid, "turned: "+why) }
func (s *steps) Called(uid, id string, o execute.Outcome, _ time.Duration) {
	s.add(uid, fmt.Sprintf("called %s %t", id, o.Final))
}
func (s *steps) Wrote(uid string, err error, _ time.Time) { s.add(uid, fmt.Sprintf("wrote %v", err)) }
func (s *steps) Posted(uid, reason, _ string)             { s.add(uid, "posted "+reason) }

func TestTheTrailHasEveryStepOfATurn(t *testing.T) {
	trail := &steps{}
	newObjectWith(t, false, trail)()
	want := []string{"u called fn true", "u wrote <nil>", "u turned: ADDED, version 1"}
	if !slices.Equal(trail.all, want) {
		t.Errorf("got %q\nwant %q", trail.all, want)
	}
}
