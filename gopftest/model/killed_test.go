package model_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf"
)

func TestACallOfAKilledProcessCountsAsNeverMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, declaration{lifecycle: "asap", storage: "annotations", statusSub: true, handlers: []handler{
			{id: "h", kind: "change", on: gopf.Create | gopf.Update, patch: "twice", subs: []handler{{id: "s", work: 30 * time.Second}}},
		}}, environment{})
		w.supervise(1)
		quiet(time.Second)
		a, b := content{spec: map[string]string{"a": `"x0"`}}, content{spec: map[string]string{"a": `"x1"`}}
		w.create("x0", a, false)
		w.rest()
		w.change("x0", b)
		quiet(5 * time.Second) // the handler has written to the status by itself
		w.current(0).kill()
		w.change("x0", a)
		w.rest()
		w.oracle.settled(w)
		w.end()
		if len(w.oracle.problems) > 0 || !strings.Contains(w.history.String(), "Working") {
			t.Errorf("problems: %q\n%s", w.oracle.problems, w.history)
		}
	})
}
