package process

import (
	"testing"

	"gopf.dev/gopf/internal/object"
)

func TestADeletionEndsTheBackoffOfEarlierErrors(t *testing.T) {
	alive, deleting := &object.Body{}, &object.Body{Identity: object.Identity{Deleting: true}}
	for name, test := range map[string]struct {
		busy     *pending
		state    *object.Body
		failures int
	}{
		"nothing is left to do":   {nil, deleting, 0},
		"a change":                {&pending{failures: 7, body: alive}, alive, 7},
		"the deletion":            {&pending{failures: 7, body: alive}, deleting, 0},
		"errors of the deletion":  {&pending{failures: 7, body: deleting}, deleting, 7},
		"nothing is known so far": {&pending{failures: 7}, deleting, 7},
	} {
		m := &Memory{busy: test.busy}
		m.noteDeletion(test.state)
		if m.busy != nil && m.busy.failures != test.failures {
			t.Errorf("%s: %d failures, want %d", name, m.busy.failures, test.failures)
		}
	}
}
