package apply

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
)

// lost tells that nobody knows whether a write was made.
func lost(err error) bool {
	var unknown *kube.UnknownOutcomeError
	return errors.As(err, &unknown)
}

// Refused reports whether the API server will never accept a change, however often
// it is sent: any 4xx except those about credentials, missing objects, timeouts,
// conflicts and overload. A patch that cannot be encoded as JSON counts, too.
func Refused(err error) bool {
	var unencodable *encodingError
	if errors.As(err, &unencodable) {
		return true
	}
	if lost(err) {
		return false
	}
	status, responded := kube.Refused(err)
	switch status.Code {
	case http.StatusUnauthorized, http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return false
	}
	return responded && status.Code/100 == 4
}

// encodingError tells that JSON cannot hold what was asked for.
type encodingError struct{ err error }

func (e *encodingError) Error() string { return "encode the patch: " + e.err.Error() }
func (e *encodingError) Unwrap() error { return e.err }

// Changed tells that somebody else had changed the object while a change was made
// that failed then.
func Changed(err error) bool {
	var changed *changedError
	return errors.As(err, &changed)
}

type changedError struct{ err error }

func (e *changedError) Error() string { return e.err.Error() }
func (e *changedError) Unwrap() error { return e.err }

// settle finds out whether a write whose answer was lost had its effect, and
// makes it again if not.
func (a Applier) settle(ctx context.Context, body *object.Body, fields map[string]any, lost error, send func() (*object.Body, error)) (*object.Body, error) {
	now, err := a.reread(ctx, body)
	switch {
	case err != nil:
		return body, fmt.Errorf("find out what became of a write (%w): %w", lost, err)
	case kept(fields, now):
		return now, nil
	}
	return send()
}

// reread reads the newest version of the object. Another object of its name is
// not it.
func (a Applier) reread(ctx context.Context, body *object.Body) (*object.Body, error) {
	now, err := a.API.Get(ctx, a.target(body, ""))
	if err != nil {
		return body, fmt.Errorf("read the object: %w", err)
	}
	if now.UID != body.UID {
		return body, apierrors.NewNotFound(a.Resource.GVR().GroupResource(), body.Name)
	}
	return now, nil
}

// Kept tells whether the object has what the patch asked for.
func Kept(p *patch.Patch, body *object.Body) bool { return kept(p.Fields(), body) }

// kept tells whether nothing is [missing].
func kept(fields map[string]any, body *object.Body) bool {
	for key, want := range fields {
		has, _ := body.Lookup(key) // the rest need not be decoded
		if !satisfied(want, has) {
			return false
		}
	}
	return true
}

func satisfied(want, has any) bool {
	fields, ok := want.(map[string]any)
	switch {
	case !ok:
		return diff.Equal(want, has)
	case has == nil:
		return onlyNulls(want)
	}
	inner, ok := has.(map[string]any)
	if !ok {
		return false
	}
	for key, value := range fields {
		if !satisfied(value, inner[key]) {
			return false
		}
	}
	return true
}

// missing is what a merge patch asks for and the object does not have. Maps of
// metadata that vanish with their last key are no news.
func missing(fields map[string]any, body *object.Body) diff.Diff {
	has := make(map[string]any, len(fields)) // the rest need not be decoded
	for key := range fields {
		if v, ok := body.Lookup(key); ok {
			has[key] = v
		}
	}
	return slices.DeleteFunc(diff.Left(fields, has), func(i diff.Item) bool {
		if i.New != nil {
			return false
		}
		return onlyNulls(i.Old)
	})
}

// onlyNulls tells whether a part of a merge patch only deletes: where there is
// nothing, there is nothing to delete. An empty map is a value, too.
func onlyNulls(v any) bool {
	fields, ok := v.(map[string]any)
	if !ok || len(fields) == 0 {
		return v == nil
	}
	for _, inner := range fields {
		if !onlyNulls(inner) {
			return false
		}
	}
	return true
}
