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

// Refused reports whether sending a change again is pointless. That holds for any 4xx
// except those about credentials, missing objects, timeouts, conflicts and overload.
// It also holds for a patch that cannot be encoded as JSON.
func Refused(err error) bool {
	if _, unencodable := errors.AsType[*encodingError](err); unencodable {
		return true
	}
	if kube.Lost(err) {
		return false
	}
	status, responded := kube.Refused(err)
	switch status.Code {
	case http.StatusUnauthorized, http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return false
	}
	return responded && status.Code/100 == 4
}

// TooLarge reports whether the API server refused a change because of its size, or of the
// size that the object would have.
func TooLarge(err error) bool {
	status, _ := kube.Refused(err)
	return status.Code == http.StatusRequestEntityTooLarge
}

// encodingError means that a patch cannot be encoded as JSON.
type encodingError struct{ err error }

func (e *encodingError) Error() string { return "encode the patch: " + e.err.Error() }
func (e *encodingError) Unwrap() error { return e.err }

// Changed reports whether another client had changed the object before the error.
func Changed(err error) bool {
	var changed *changedError
	return errors.As(err, &changed)
}

type changedError struct{ err error }

func (e *changedError) Error() string { return e.err.Error() }
func (e *changedError) Unwrap() error { return e.err }

// confirm reads the object after the response to a write was lost. It sends the write
// again if the object does not have the fields.
func (a Applier) confirm(ctx context.Context, body *object.Body, fields map[string]any, lost error, send func() (*object.Body, error)) (*object.Body, error) {
	now, err := a.reread(ctx, body)
	switch {
	case err != nil:
		return body, fmt.Errorf("confirm a write without a response (%w): %w", lost, err)
	case kept(fields, now):
		return now, nil
	}
	return send()
}

// reread reads the newest version of the object. If another object has its name, the
// error is NotFound.
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

// Kept reports whether the object has all fields of the patch. Edits are ignored.
func Kept(p *patch.Patch, body *object.Body) bool { return kept(p.Fields(), body) }

// kept reports whether nothing is [missing].
func kept(fields map[string]any, body *object.Body) bool {
	for key, want := range fields {
		has, _ := body.Lookup(key) // decodes only this member
		if !patch.Landed(want, has, patch.Exact) {
			return false
		}
	}
	return true
}

// missing returns the changes of a merge patch that the object does not have. A part
// that only deletes is not missing from an absent map: the server may have dropped the
// map with its last key.
func missing(fields map[string]any, body *object.Body) diff.Diff {
	has := make(map[string]any, len(fields)) // only these members are decoded
	for key := range fields {
		if v, ok := body.Lookup(key); ok {
			has[key] = v
		}
	}
	return slices.DeleteFunc(diff.Left(fields, has), func(i diff.Item) bool {
		return i.New == nil && patch.OnlyRemoves(i.Old)
	})
}
