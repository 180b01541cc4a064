package gopf

import (
	"math/rand/v2"
	"slices"
	"time"

	"gopf.dev/gopf/internal/registry"
)

// Due is a handler whose turn it could be.
type Due struct {
	ID      string
	Retries int       // attempts made so far
	Started time.Time // when it became due for the first time
}

// Lifecycle chooses which of the handlers that are due for an object run now,
// and in which order; the others stay due. State is saved after each choice has
// run, so running few at a time repeats less after a crash.
type Lifecycle func(due []Due) []Due

// AllAtOnce runs all that are due, in the order of declaration.
func AllAtOnce(due []Due) []Due { return due }

// OneByOne runs the first one only.
func OneByOne(due []Due) []Due { return due[:min(1, len(due))] }

// Randomized runs one at random.
func Randomized(due []Due) []Due {
	if len(due) == 0 {
		return nil
	}
	return []Due{due[rand.IntN(len(due))]}
}

// Shuffled runs all that are due in a random order.
func Shuffled(due []Due) []Due {
	due = slices.Clone(due)
	rand.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
	return due
}

// ASAP runs the one with the fewest attempts, so that a handler that keeps
// failing does not hold up the others. It is the default.
func ASAP(due []Due) []Due {
	if len(due) == 0 {
		return nil
	}
	return []Due{slices.MinFunc(due, func(a, b Due) int { return a.Retries - b.Retries })}
}

// inEngine is the choice in the engine's terms.
func (l Lifecycle) inEngine() registry.Lifecycle {
	return func(candidates []registry.Due) []registry.Due {
		due := make([]Due, len(candidates))
		for i, c := range candidates {
			due[i] = Due(c)
		}
		chosen := make([]registry.Due, 0, len(due))
		for _, d := range l(due) {
			chosen = append(chosen, registry.Due(d))
		}
		return chosen
	}
}

// SubOption says how sub-handlers are run.
type SubOption func(*registry.SubOptions)

// Parallel runs up to n of the chosen sub-handlers at the same time.
func Parallel(n int) SubOption {
	return func(o *registry.SubOptions) { o.Parallel = n }
}

// InOrderOf runs the sub-handlers by a lifecycle of their own instead of the
// operator's.
func InOrderOf(l Lifecycle) SubOption {
	return func(o *registry.SubOptions) { o.Lifecycle = l.inEngine() }
}
