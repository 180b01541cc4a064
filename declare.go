package gopf

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"gopf.dev/gopf/internal/handler"
)

// leastDuration is the shortest duration in a declaration. A shorter one is a number
// without its unit: Timer("x", 30, fn) means 30 ns.
const leastDuration = time.Millisecond

// span is a duration in a declaration, with the name of its option.
type span struct {
	option string
	is     time.Duration
}

// problem describes an invalid duration. A valid one yields "".
func (s span) problem() string {
	switch {
	case s.is < 0:
		return fmt.Sprintf("%s is negative: %s", s.option, s.is)
	case s.is > 0 && s.is < leastDuration:
		return fmt.Sprintf("%s is only %s; add the unit, as in %d*time.Second", s.option, s.is, s.is.Nanoseconds())
	}
	return ""
}

// checkSpans reports invalid durations.
func (op *Operator) checkSpans(id string, spans ...span) {
	for _, s := range spans {
		if p := s.problem(); p != "" {
			op.problem("handler %q: %s", id, p)
		}
	}
}

// checkLimits returns the problems of the retry options of a handler, one sentence
// each.
func checkLimits(l handler.Limits) (problems []string) {
	if l.Retries.Set && l.Retries.Is < 0 {
		problems = append(problems, fmt.Sprintf("MaxAttempts is negative: %d; leave it out for no limit", l.Retries.Is))
	}
	for _, s := range []span{{"Timeout", l.Timeout.Or(0)}, {"Backoff", l.Backoff.Or(0)}} {
		if p := s.problem(); p != "" {
			problems = append(problems, p)
		}
	}
	return problems
}

// joined returns one error for several sentences. No sentence means nil.
func joined(problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	return errors.New(strings.Join(problems, "; "))
}

// checkHandler reports invalid options of a handler, and label selectors that
// contradict those of other handlers.
func (op *Operator) checkHandler(h *handler.Handler) {
	for _, p := range checkLimits(h.Limits) {
		op.problem("handler %q: %s", h.ID, p)
	}
	for _, other := range op.handlers {
		if other.Of.String() != h.Of.String() {
			continue
		}
		if err := other.CheckSameSelect(h); err != nil {
			op.problem("%w", err)
			return
		}
	}
}
