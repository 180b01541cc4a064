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
// has cleaned up and they are gone. It ends earlier only if ctx does.
func (s *session) delete(ctx context.Context, r Releasing, served []discovery.Served) error {
	var failures []error
	for _, one := range served {
		failures = append(failures, s.deleteAll(ctx, r, one))
	}
	if err := errors.Join(failures...); err != nil || r.DryRun {
		return err
	}
	for last := ""; ; {
		left, err := s.left(ctx, r, served)
		if err != nil {
			return err
		}
		if len(left) == 0 {
			fmt.Fprintln(r.Out, "all objects are gone")
			return nil
		}
		text := fmt.Sprintf("waiting for the operator: %d objects left, such as %s\n", len(left), left[0])
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
	s.concurrently(ctx, r, served, func(body *object.Body) {
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
	}, &last, &mu)
	verb := "deleted"
	if r.DryRun {
		verb = "to delete"
	}
	fmt.Fprintf(r.Out, "%s: %d %s\n", served.Info, deleted.Load(), verb)
	return last
}

// left returns the objects that are being deleted, with their finalizers.
func (s *session) left(ctx context.Context, r Releasing, served []discovery.Served) (names []string, err error) {
	for _, one := range served {
		err := s.list(ctx, one, r.Selector, func(body *object.Body) {
			if body.Deleting {
				names = append(names, one.Info.Plural+"/"+body.Name+" ("+strings.Join(body.Finalizers(), ", ")+")")
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return names, nil
}
