package process

import (
	"errors"
	"fmt"
	"time"

	"gopf.dev/gopf/internal/apply"
	"gopf.dev/gopf/internal/object"
)

// rest notes when the object is to be looked at again.
func (k *Kind) rest(m *Memory, body *object.Body, due delay, err error) {
	switch {
	case errors.Is(err, apply.ErrGone):
		m.busy, m.ended = nil, true // its deletion is about to be seen
	case err != nil:
		w := m.work()
		w.body = body
		pause := k.pause(w.failures)
		var panicked *panicError
		w.refused = errors.As(err, &panicked) || apply.Refused(err)
		w.failures, w.until = w.failures+1, time.Now().Add(pause)
		k.Logger(body).Error(fmt.Sprintf("Throttling for %g seconds due to an unexpected error: %v", pause.Seconds(), err))
		k.Alarm(body.Key(), w.until)
	case due.Set:
		m.busy = &business{body: body.Undecoded(), postponed: m.work().postponed}
		k.Alarm(body.Key(), time.Now().Add(due.Is))
	default:
		m.busy = nil
	}
}

func (k *Kind) pause(failures int) time.Duration {
	delays := k.Config.ErrorDelays
	if len(delays) == 0 {
		return 0
	}
	return delays[min(failures, len(delays)-1)]
}

// forgotten is the pause before handlers are called again whose progress the
// cluster does not keep. It grows.
func (k *Kind) forgotten(m *Memory) time.Duration {
	m.undone = min(m.undone, 253) + 1
	return k.pause(int(m.undone) - 1)
}
