package engine

import (
	"context"
	"sync"
	"time"

	"gopf.dev/gopf/internal/execute"
)

// stop stops all controllers. New turns do not start, and running handlers may finish
// within ExitTimeout. Then their contexts are canceled. Handlers that still do not
// return are abandoned with a warning. Daemons and timers have the grace periods of
// their declarations.
func (op *operator) stop(cancel context.CancelCauseFunc) {
	close(op.stopping)
	controllers := op.controllers.End()
	limit := op.controllers.Shared.Limit()
	for _, c := range controllers {
		limit = max(limit, c.Limit())
	}
	last, end := context.WithTimeout(context.Background(), limit)
	defer end()
	exit := time.AfterFunc(op.ExitTimeout, func() { cancel(execute.ErrStopping) })
	defer exit.Stop()

	var closing sync.WaitGroup
	closing.Go(func() { <-op.controllers.Retired() })
	closing.Go(op.children.Stop)
	for _, c := range controllers {
		closing.Go(func() { c.Stop(last) })
	}
	done := make(chan struct{})
	go func() { closing.Wait(); close(done) }()
	go func() {
		select {
		case <-op.evicted:
			cancel(execute.ErrStopping)
			end()
		case <-last.Done(): // when this function returns, at the latest
		}
	}()
	leave := time.NewTimer(limit + time.Second) // at the limit, daemon sets log which daemons they abandon
	defer leave.Stop()
	select {
	case <-done:
	case <-leave.C:
		for _, c := range controllers {
			for _, name := range c.Running() {
				op.Log.Warn("A handler did not stop in time and was abandoned.", "resource", c.Info().String(), "name", name)
			}
		}
	}
}
