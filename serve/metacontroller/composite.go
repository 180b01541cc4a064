package metacontroller

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/retry"
)

// compose syncs the parent of a CompositeController.
func (s *step) compose(ctx context.Context) error {
	selector, err := Selector(s.parent, s.spec.GenerateSelector)
	if err != nil {
		return err
	}
	observed, unclaimed, err := s.claim(ctx, selector)
	if err != nil {
		return err
	}
	return errors.Join(s.composeWith(ctx, selector, observed), unclaimed)
}

// composeWith syncs the parent with its children.
func (s *step) composeWith(ctx context.Context, selector labels.Selector, observed objects) error {
	related, err := s.related(ctx)
	if err != nil {
		return err
	}
	response, err := s.respond(ctx, selector, observed, related)
	if err != nil {
		return err
	}
	s.again(s.key, response.ResyncAfterSeconds)
	parent := s.parent
	if response.Finalized {
		if parent, err = s.edit(ctx, s.of.resource, parent, func(p *unstructured.Unstructured) bool { return setFinalizer(p, s.finalizer, false) }); err != nil || parent == nil {
			return err
		}
	}
	for _, d := range response.Children {
		if !selector.Matches(labels.Set(d.GetLabels())) {
			return fmt.Errorf("labels on desired child %s don't match parent selector", describe(d))
		}
	}
	var problem error
	if managed(parent, s.finalizer) {
		problem = s.reconcile(ctx, family{parent: s.parent, observed: observed, desired: response.Children})
	}
	return errors.Join(problem, s.writeStatus(ctx, response.Status))
}

// respond calls the hook and returns the prepared response.
func (s *step) respond(ctx context.Context, selector labels.Selector, observed, related objects) (*CompositeHookResponse, error) {
	if s.rolling {
		return s.roll(ctx, selector, observed, related)
	}
	return s.response(ctx, s.parent, observed, related)
}

// response calls the hook for one form of the parent.
func (s *step) response(ctx context.Context, parent *unstructured.Unstructured, observed, related objects) (*CompositeHookResponse, error) {
	response := &CompositeHookResponse{}
	if err := s.ask(ctx, parent, observed, related, response); err != nil {
		return nil, err
	}
	response.Children = Desired(parent, response.Children, s.spec.GenerateSelector, "")
	return response, s.checkNamespaces(response.Children)
}

// mostFailedClaims is the number of failures after which a sync claims no other objects.
const mostFailedClaims = 10

// claimError is the failure to adopt or release one object.
type claimError struct{ err error }

func (e *claimError) Error() string { return e.err.Error() }
func (e *claimError) Unwrap() error { return e.err }

// claim returns the children of the parent. It adopts orphans and releases children. An object for
// which that fails is no child in this sync: for example, a policy refuses the write. unclaimed
// has these failures.
func (s *step) claim(ctx context.Context, selector labels.Selector) (observed objects, unclaimed, err error) {
	observed = s.empty()
	alive := s.aliveOnce(ctx)
	var failures []error
	for _, kind := range sortedKeys(s.children) {
		r := s.children[kind].resource
		for _, obj := range s.storedIn(r, s.parent.GetNamespace()) {
			if len(failures) >= mostFailedClaims && !tooLarge(obj) && Claim(s.parent, obj, selector) != Owned {
				continue
			}
			member, err := s.claimOne(ctx, r, obj, selector, alive)
			if errors.As(err, new(*claimError)) && ctx.Err() == nil {
				failures = append(failures, err)
				continue
			}
			if err != nil {
				return nil, nil, err
			}
			if !member {
				continue
			}
			if obj, err = s.whole(ctx, r, obj); err != nil {
				return nil, nil, err
			}
			if obj != nil {
				observed.add(kind, obj)
			}
		}
	}
	return observed, errors.Join(failures...), nil
}

// claimOne decides about one object and reports whether it is a child.
func (s *step) claimOne(ctx context.Context, r resource, obj *unstructured.Unstructured, selector labels.Selector, alive func() (bool, error)) (bool, error) {
	if tooLarge(obj) { // its labels may be missing in the cache
		if ref := metav1.GetControllerOfNoCopy(obj); ref == nil || ref.UID != s.parent.GetUID() {
			return false, nil
		}
		return false, tooLargeObject(obj, stubSize(obj))
	}
	decision := Claim(s.parent, obj, selector)
	if isStub(obj) && !s.slot && decision != Foreign {
		return false, errLarge
	}
	switch decision {
	case Owned:
		return true, nil
	case Release:
		_, err := s.edit(ctx, r, obj, func(o *unstructured.Unstructured) bool { disown(s.parent, o); return true })
		if err != nil {
			err = &claimError{fmt.Errorf("can't release %s: %w", describe(obj), err)}
		}
		return false, err
	case Adopt:
		if ok, err := alive(); !ok || err != nil {
			return false, err
		}
		adopted := false
		_, err := s.edit(ctx, r, obj, func(o *unstructured.Unstructured) bool {
			if metav1.GetControllerOfNoCopy(o) != nil || o.GetDeletionTimestamp() != nil {
				return false
			}
			own(s.parent, o)
			adopted = true
			return true
		})
		if err != nil {
			return false, &claimError{fmt.Errorf("can't adopt %s: %w", describe(obj), err)}
		}
		return adopted, nil
	}
	return false, nil
}

// aliveOnce returns a function that reads the parent at its first call, and reports
// whether it exists and is not being deleted.
func (s *step) aliveOnce(ctx context.Context) func() (bool, error) {
	asked, alive := false, false
	return func() (bool, error) {
		if asked {
			return alive, nil
		}
		live, err := s.in(s.of.resource, s.parent.GetNamespace()).Get(ctx, s.parent.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			asked = true
			return false, nil
		}
		if err != nil {
			return false, err
		}
		asked, alive = true, live.GetUID() == s.parent.GetUID() && live.GetDeletionTimestamp() == nil
		return alive, nil
	}
}

// writeStatus replaces the status of the parent. A parent that is gone is no error.
func (s *step) writeStatus(ctx context.Context, status map[string]any) error {
	if status == nil {
		status = map[string]any{}
	}
	status["observedGeneration"] = s.parent.GetGeneration()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		live, err := s.in(s.of.resource, s.parent.GetNamespace()).Get(ctx, s.parent.GetName(), metav1.GetOptions{})
		if err != nil || live.GetUID() != s.parent.GetUID() || reflect.DeepEqual(live.Object["status"], any(status)) {
			return err
		}
		live.Object["status"] = status
		result, err := s.in(s.of.resource, s.parent.GetNamespace()).UpdateStatus(ctx, live, metav1.UpdateOptions{})
		if err == nil {
			s.wrote(s.key, result)
		}
		return err
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
