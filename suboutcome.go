package gopf

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"gopf.dev/gopf/internal/handler"
)

// SubHandler is a sub-handler that was declared by [Change.Sub]. It belongs to one call of
// its parent. The functions of sub-handlers may use it.
type SubHandler struct {
	id      string
	req     *handler.Request
	handler *handler.Handler // nil means that it does not take part
}

func (s *SubHandler) dependency(spec *wantSpec) { spec.subs = append(spec.subs, s) }

// Outcome returns the outcome of the sub-handler for the present change. It is read from
// the record on the object, so it is known in later attempts, and after a restart.
//
//	done, err := snapshot.Outcome(ctx)
//
// done is false if the sub-handler is not finished. If it has failed permanently, done is
// true, and err is a [SubsError]. A sub-handler that was left out by [If] or by its filters
// is done without an error. Other errors mean that the record cannot be loaded.
func (s *SubHandler) Outcome(ctx context.Context) (done bool, err error) {
	if s.handler == nil {
		return true, nil
	}
	o, err := s.req.SubOutcome(ctx, s.handler)
	if err == nil && o.Failed {
		err = &SubsError{Failed: map[string]error{s.id: errors.New(o.Error)}}
	}
	return o.Done, err
}

// SubsError means that sub-handlers have failed permanently. [Change.RunSubs] and
// [SubHandler.Outcome] return it. A handler that returns it fails permanently.
type SubsError struct {
	// Failed has the errors of the failed sub-handlers by their ids, without the id of
	// the parent. The errors have only the recorded texts of the original ones.
	Failed map[string]error
}

func (e *SubsError) Error() string {
	var texts []string
	for _, id := range slices.Sorted(maps.Keys(e.Failed)) {
		texts = append(texts, id+": "+e.Failed[id].Error())
	}
	return "sub-handlers failed: " + strings.Join(texts, "; ")
}

// failedSubs returns a [SubsError] if some of the finished sub-handlers have failed.
func (c *Change[T]) failedSubs(ctx context.Context) error {
	failed := map[string]error{}
	for _, s := range c.declared {
		_, err := s.Outcome(ctx)
		if one, ok := errors.AsType[*SubsError](err); ok {
			maps.Copy(failed, one.Failed)
		} else if err != nil {
			return err
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return &SubsError{failed}
}
