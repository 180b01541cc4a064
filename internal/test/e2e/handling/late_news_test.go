package handling_test

import (
	"context"
	"strings"
	"testing"

	"gopf.dev/gopf"
)

// The stream may still tell of what happened to an object before its end, when
// the operator knows of the end already.
func TestADeletionIsNotHandledAgainBecauseOfNewsFromBeforeTheEnd(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	x := gopf.For[*Example](op, examples)
	x.OnEvent("event_fn", func(context.Context, *gopf.WatchEvent[*Example]) error { return nil }) // so that all events are told
	x.OnDelete("delete_fn", d.handler("delete"))
	attempts := 0
	o := s.start(op, func(_ int, w write) mishap {
		if !strings.Contains(w.body, `{"op":"remove","path":"/metadata/finalizers`) {
			return ""
		}
		if attempts++; attempts == 1 { // somebody else changes it, so that it is tried again
			if err := s.TryPatch(examples, "x", fields{"metadata": fields{"labels": fields{"rival": "yes"}}}); err != nil {
				t.Error(err)
			}
			return ""
		}
		return answerLost // but it is done
	})
	s.Create(examples, "x", spec("a"))
	s.waitHandled(examples, "x", "a")
	s.Delete(examples, "x")
	s.waitGone(examples, "x")
	o.staysQuiet(t, d)
	d.Check(t, "delete delete a")
}
