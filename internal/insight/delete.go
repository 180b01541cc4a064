package insight

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/discovery"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
)

// deletionPolling is the time between two looks at objects that are being deleted.
const deletionPolling = time.Second

// delete deletes all objects of the selected resources, and waits until the running operator
// has removed its finalizers. It ends earlier only if ctx does. Objects with the finalizers of
// others, and objects that cannot be read, are only reported.
func (s *session) delete(ctx context.Context, r Releasing, served []discovery.Served) error {
	var failures []error
	for _, one := range served {
		failures = append(failures, s.deleteAll(ctx, r, one))
	}
	if err := errors.Join(failures...); err != nil || r.DryRun {
		return err
	}
	for last := ""; ; {
		held, others, err := s.left(ctx, r, served)
		switch {
		case err != nil:
			return err
		case len(held) == 0 && len(others) == 0:
			fmt.Fprintln(r.Out, "all objects are gone")
			return nil
		case len(held) == 0:
			fmt.Fprintf(r.Out, "the operator has cleaned up; %d objects stay until others release them, such as %s\n", len(others), others[0])
			return nil
		}
		text := fmt.Sprintf("waiting for the operator: %d objects left, such as %s\n", len(held), held[0])
		if text != last {
			fmt.Fprint(r.Out, text)
			last = text
		}
		if err := backoff.Sleep(ctx, deletionPolling); err != nil {
			return err
		}
	}
}

// deleteAll requests the deletion of the objects of one resource.
func (s *session) deleteAll(ctx context.Context, r Releasing, served discovery.Served) error {
	var deleted atomic.Int64
	var last error
	var mu sync.Mutex
	remove := func(body *object.Body) {
		if !body.Deleting && !r.DryRun {
			err := s.client.Delete(ctx, kube.Target{Info: served.Info, Namespace: body.Namespace, Name: body.Name}, kube.DeleteOptions{UID: body.UID})
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				mu.Lock()
				defer mu.Unlock()
				last = fmt.Errorf("delete %s %s/%s: %w", served.Info, body.Namespace, body.Name, err)
				return
			}
		}
		deleted.Add(1)
	}
	for _, id := range s.concurrently(ctx, r, served, remove, &last, &mu) {
		remove(id.Bare())
	}
	verb := "deleted"
	if r.DryRun {
		verb = "to delete"
	}
	fmt.Fprintf(r.Out, "%s: %d %s\n", served.Info, deleted.Load(), verb)
	return last
}

// left returns the objects that are being deleted and have a finalizer of the operator, and
// those that stay for other reasons, each with the reason.
func (s *session) left(ctx context.Context, r Releasing, served []discovery.Served) (held, others []string, err error) {
	for _, one := range served {
		p := s.processor(one)
		skipped := func(id object.Identity) {
			others = append(others, one.Info.Plural+"/"+id.Name+" (it cannot be read)")
		}
		err := s.list(ctx, one, r.Selector, skipped, func(body *object.Body) {
			into := &others
			if p.Holds(body) {
				into = &held
			}
			if body.Deleting {
				*into = append(*into, one.Info.Plural+"/"+body.Name+" ("+strings.Join(body.Finalizers(), ", ")+")")
			}
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return held, others, nil
}
