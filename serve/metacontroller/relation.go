package metacontroller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
)

// relationWait is the time that the first list of a related resource may take. Until it ends, syncs
// that need the resource occupy their workers.
const relationWait = 5 * time.Second

// source is the cache of a resource, and the state of its watch.
type source struct {
	cache.SharedIndexInformer
	log    *slog.Logger
	failed chan struct{} // closed after the first failure to list or watch

	mu   sync.Mutex
	err  error     // the last failure; nil means none
	said time.Time // when a failure was last logged
}

// fail records a failure to list or watch. It logs a failure that is like the one before once
// per [warnInterval].
func (s *source) fail(_ context.Context, _ *cache.Reflector, err error) {
	if errors.Is(err, io.EOF) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return // the end of each watch
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	again := s.err != nil && s.err.Error() == err.Error()
	if s.err == nil {
		close(s.failed)
	}
	s.err = err
	if again && time.Since(s.said) < warnInterval {
		return
	}
	s.said = time.Now()
	s.log.Warn("A resource cannot be listed and watched. The operator tries again.", "error", err)
}

// failure returns the last failure to list or watch.
func (s *source) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// relation is the use of a resource for related objects. A tenant may choose the resource, and
// the operator may have no permission to list it.
type relation struct {
	resource resource
	until    time.Time // the end of the wait for the first list
	source   *source
	synced   cache.DoneChecker

	mu      sync.Mutex
	waiting map[key]bool // parents whose syncs failed because the cache is not filled
}

// relate returns the relation with a name, and begins it if there is none. handler may be nil.
func (c *controller) relate(name string, r resource, handler cache.ResourceEventHandler) (*relation, error) {
	c.relating.Lock()
	defer c.relating.Unlock()
	if known := c.relations[name]; known != nil {
		return known, nil
	}
	from, synced, err := c.open(r, handler)
	if err != nil {
		return nil, err
	}
	made := &relation{resource: r, until: time.Now().Add(relationWait), source: from, synced: synced, waiting: map[key]bool{}}
	c.relations[name] = made
	c.running.Go(func() {
		select {
		case <-synced.Done():
		case <-c.stop:
			return
		}
		made.mu.Lock()
		defer made.mu.Unlock()
		for k := range made.waiting {
			c.queue.Add(k)
		}
		made.waiting = nil
	})
	return made, nil
}

// await waits until the cache is filled. If the resource cannot be listed, await fails at
// once, or after [relationWait]. The parent is then queued when the cache is filled.
func (r *relation) await(ctx context.Context, k key) error {
	if cache.IsDone(r.synced) {
		return nil
	}
	failed := r.source.failed
	if r.source.HasSynced() {
		failed = nil // the cache is filled, and only the handler must catch up
	}
	late := time.NewTimer(time.Until(r.until))
	defer late.Stop()
	select {
	case <-r.synced.Done():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-failed:
	case <-late.C:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if cache.IsDone(r.synced) {
		return nil
	}
	r.waiting[k] = true
	err := fmt.Errorf("there is no list of the related resource %s in apiVersion %s: the operator may not list and watch it, or the API server does not respond",
		r.resource.gvr.Resource, r.resource.apiVersion)
	if cause := r.source.failure(); cause != nil {
		err = fmt.Errorf("%w; the last error: %w", err, cause)
	}
	return err
}
