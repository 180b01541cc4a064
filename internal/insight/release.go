package insight

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	metalabels "k8s.io/apimachinery/pkg/labels"

	"gopf.dev/gopf/internal/discovery"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/object"
)

// Releasing removes the marks of the operator from the cluster.
type Releasing struct {
	Kinds    []string // resources; empty means all
	Selector string   // label selector; "" means all objects
	DryRun   bool     // only count
	Force    bool     // even if the operator runs
	Delete   bool     // delete the objects, and let the running operator clean up
	Out      io.Writer
}

// partial reports whether only a part of the objects is released. The objects of the
// operator itself stay then.
func (r Releasing) partial() bool { return len(r.Kinds) > 0 || r.Selector != "" }

// maxReleases limits the concurrent writes. The client may allow fewer.
const maxReleases = 100

// Release removes the finalizers, annotations and states of the operator from all objects
// of its resources, whether or not its handlers select them. Before that, it deletes the webhook
// configurations of the operator, and afterwards its lease. It refuses while the operator runs. A
// release that was interrupted continues with another call.
//
// With [Releasing.Delete], it deletes the objects and waits until the operator has cleaned
// up: until it has removed its finalizers. The operator must run; nothing else is removed.
//
// Objects that fail stop nothing else. The returned error names them.
func (op *Operator) Release(ctx context.Context, r Releasing) error {
	if _, err := metalabels.Parse(r.Selector); err != nil {
		return fmt.Errorf("the selector %q: %w", r.Selector, err)
	}
	return op.connected(ctx, func(ctx context.Context, s *session) error {
		if !r.Force && !r.DryRun && !r.Delete {
			if err := s.refuseRunning(ctx); err != nil {
				return err
			}
		}
		served, err := s.releasable(r)
		if err != nil {
			return err
		}
		if r.Delete {
			return s.delete(ctx, r, served)
		}
		whole := !r.partial() && !r.DryRun && len(s.Namespaces) == 0
		var failures []error
		if whole {
			// First: the operator does not run, so its webhooks may refuse all other writes.
			failures = append(failures, s.deleteWebhooks(ctx, r))
		}
		for _, one := range served {
			failures = append(failures, s.release(ctx, r, one))
		}
		if r.DryRun || ctx.Err() != nil {
			return errors.Join(failures...)
		}
		// An object that fails must not keep the rest of the operator in the cluster.
		if whole {
			failures = append(failures, s.releaseChildren(ctx, r), s.deleteRecords(ctx, r))
		}
		if err := errors.Join(failures...); err != nil {
			return err
		}
		return s.verify(ctx, r, served)
	})
}

// releasable returns the resources whose objects may have marks.
func (s *session) releasable(r Releasing) (found []discovery.Served, err error) {
	for _, name := range r.Kinds {
		served, err := s.find(name)
		if err != nil {
			return nil, err
		}
		found = append(found, served)
	}
	if len(r.Kinds) > 0 {
		return found, nil
	}
	for _, served := range s.served {
		if len(served.Handlers.Of(handler.Changes))+len(served.Handlers.Of(handler.Background))+len(served.Handlers.Of(handler.Reconciles)) > 0 {
			found = append(found, served)
		}
	}
	return found, nil
}

// release releases the objects of one resource. Objects that fail do not stop the others.
func (s *session) release(ctx context.Context, r Releasing, served discovery.Served) error {
	p := s.processor(served)
	var seen, released, failed atomic.Int64
	var last error
	var mu sync.Mutex
	unreadable := s.concurrently(ctx, r, served, func(body *object.Body) {
		seen.Add(1)
		done, err := p.Release(ctx, body, r.DryRun)
		switch {
		case err != nil:
			failed.Add(1)
			mu.Lock()
			defer mu.Unlock()
			last = fmt.Errorf("%s %s/%s: %w", served.Info, body.Namespace, body.Name, advise(err, served.Info))
		case done:
			released.Add(1)
		}
	}, &last, &mu)
	if n := len(unreadable); n > 0 {
		seen.Add(int64(n))
		failed.Add(int64(n))
		last = errors.Join(last, fmt.Errorf("%d objects of %s cannot be read, such as %s: if they have the finalizer %s, remove it",
			n, served.Info, unreadable[0], p.Config.Finalizer))
	}
	verb := "released"
	if r.DryRun {
		verb = "to release"
	}
	fmt.Fprintf(r.Out, "%s: %d seen, %d %s, %d failed\n", served.Info, seen.Load(), released.Load(), verb, failed.Load())
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return last
}

// concurrently calls do for all objects of a resource, and waits for the calls. An error of
// the list goes to failure. It returns the objects that cannot be read, without duplicates.
func (s *session) concurrently(ctx context.Context, r Releasing, served discovery.Served, do func(*object.Body), failure *error, mu *sync.Mutex) (unreadable []object.Identity) {
	slots := make(chan struct{}, maxReleases)
	var calls sync.WaitGroup
	known := map[string]bool{}
	skipped := func(id object.Identity) {
		if !known[id.Key()] {
			known[id.Key()] = true
			unreadable = append(unreadable, id)
		}
	}
	err := s.list(ctx, served, r.Selector, skipped, func(body *object.Body) {
		slots <- struct{}{}
		calls.Go(func() { defer func() { <-slots }(); do(body) })
	})
	calls.Wait()
	if err != nil {
		mu.Lock()
		defer mu.Unlock()
		*failure = err
	}
	return unreadable
}

// verify counts the objects that have marks after the release: a running operator puts them
// back.
func (s *session) verify(ctx context.Context, r Releasing, served []discovery.Served) error {
	left := 0
	var names []string
	for _, one := range served {
		p := s.processor(one)
		err := s.list(ctx, one, r.Selector, nil, func(body *object.Body) {
			if marked, _ := p.Release(ctx, body, true); marked {
				if left++; len(names) < 3 {
					names = append(names, one.Info.Plural+"/"+body.Name)
				}
			}
		})
		if err != nil {
			return err
		}
	}
	if left > 0 {
		return fmt.Errorf("%d objects have marks of the operator again, such as %s: it is still running; stop it, and release again", left, strings.Join(names, ", "))
	}
	fmt.Fprintln(r.Out, "0 objects with marks of the operator")
	return nil
}
