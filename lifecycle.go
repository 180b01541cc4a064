package gopf

import (
	"math/rand/v2"
	"slices"
	"time"

	"gopf.dev/gopf/internal/handler"
)

// Due is a handler that is due for an object.
type Due struct {
	ID       string
	Attempts int       // number of earlier attempts
	Started  time.Time // when it was first due
}

// Lifecycle selects which of the handlers that are due for an object run now, and in
// which order. The others stay due. The progress is saved after each selection, so the
// fewer handlers are selected at once, the fewer are repeated after a crash.
//
// The argument is in order of declaration and may be modified. The function must be
// safe for concurrent use.
type Lifecycle func(due []Due) []Due

// AllAtOnce selects all handlers, in order of declaration.
func AllAtOnce(due []Due) []Due { return due }

// OneByOne selects the first handler. The next one waits until it is done, even while
// it is retried.
func OneByOne(due []Due) []Due { return due[:min(1, len(due))] }

// Randomized selects one handler at random.
func Randomized(due []Due) []Due {
	if len(due) == 0 {
		return nil
	}
	return []Due{due[rand.IntN(len(due))]}
}

// Shuffled selects all handlers, in random order.
func Shuffled(due []Due) []Due {
	due = slices.Clone(due)
	rand.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
	return due
}

// ASAP selects the handler with the fewest attempts, and among equals the one declared
// first. A failing handler therefore does not block the others. It is the default.
func ASAP(due []Due) []Due {
	if len(due) == 0 {
		return nil
	}
	return []Due{slices.MinFunc(due, func(a, b Due) int { return a.Attempts - b.Attempts })}
}

// inEngine returns the lifecycle with the types of the engine.
func (l Lifecycle) inEngine() handler.Lifecycle {
	return func(candidates []handler.Due) []handler.Due {
		due := make([]Due, len(candidates))
		for i, c := range candidates {
			due[i] = Due(c)
		}
		chosen := make([]handler.Due, 0, len(due))
		for _, d := range l(due) {
			chosen = append(chosen, handler.Due(d))
		}
		return chosen
	}
}
