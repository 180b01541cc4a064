package serve

import (
	"context"
	"runtime"

	"gopf.dev/gopf/internal/queue"
	"gopf.dev/gopf/serve/call"
)

// share limits the work of all handlers of a file that runs at the same time. Objects of
// tenants cause it, and each piece may take many megabytes. Namespaces take turns, and one
// cannot have all slots. Objects without a namespace count as one namespace.
//
// Reviews have separate slots, which clients share: see [call.Acquire]. Any network peer can
// send reviews, and they must not delay the handlers of objects in the cluster.
//
// A call that waits for a slot of evaluations may hold others, and memory of declared children.
// So evaluations wait for nothing. A call that waits for memory may hold a slot of templates.
// So calls that have memory wait for no such slot.
type share struct {
	evaluations *queue.Slots  // of one expression or template
	reviews     *queue.Slots  // the same, for reviews
	templates   *queue.Slots  // calls that render the templates of children, until all are declared
	lists       *queue.Slots  // requests for the live children of an object
	inputs      *queue.Budget // of programs and hooks
}

// Slots of evaluations. One takes tens of megabytes at worst, and a processor.
const (
	leastEvaluations = 2 // one namespace cannot have both
	mostEvaluations  = 8
	leastReviews     = 3 // one client cannot have all, and one namespace of a client cannot have both of its two
)

// Other slots.
const (
	mostTemplates = 8 // each has rendered children of up to 4 MiB
	mostLists     = 8 // each has one child of up to 1.5 MiB
)

func newShare() *share {
	evaluations := min(max(runtime.GOMAXPROCS(0), leastEvaluations), mostEvaluations)
	return &share{
		evaluations: queue.NewSlots(evaluations), reviews: queue.NewSlots(max(evaluations/2, leastReviews)),
		templates: queue.NewSlots(mostTemplates), lists: queue.NewSlots(mostLists), inputs: call.NewInputs(),
	}
}

// evaluate calls fn, which evaluates expressions for an object in the namespace. A nil review
// means that the object is in the cluster. fn must not wait for anything.
func (s *share) evaluate(ctx context.Context, review *call.Review, namespace string, fn func() error) error {
	slots := s.evaluations
	if review != nil {
		slots = s.reviews
	}
	return within(ctx, slots, review, namespace, fn)
}

// within calls fn while it has a slot. If ctx ends before there is one, its cause is returned.
// See [share.evaluate] for review.
func within(ctx context.Context, slots *queue.Slots, review *call.Review, namespace string, fn func() error) error {
	release, ok := call.Acquire(slots, review, namespace, ctx.Done(), nil)
	if !ok {
		return context.Cause(ctx)
	}
	defer release()
	return fn()
}
