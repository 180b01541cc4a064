package apply

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
)

// finalize adds or removes the finalizer and makes the other changes of the step, in
// one JSON patch that is bound to the version of the body. If the object is newer, it
// returns a conflict: the caller reads the object and decides again.
func (a Applier) finalize(ctx context.Context, body *object.Body, s step) (*object.Body, error) {
	// Only the fields of the patch are decoded: the object may be large, and it waits for the response.
	changed := make(map[string]any, len(s.fields))
	for name := range s.fields {
		if value, ok := body.Lookup(name); ok {
			changed[name] = value
		}
	}
	ops := append(patch.Ops(changed, s.fields, metadataOnly), s.finalizer.ops(body)...)
	if len(ops) == 0 {
		return body, nil // the object is as wanted, or the removal is no longer right
	}
	ops = append([]patch.Op{patch.Unchanged(body.ResourceVersion)}, ops...)
	a.Log.Debug("JSON-patching the resource with:", "patch", a.shown(ops))
	raw, err := json.Marshal(ops)
	if err != nil {
		return body, &encodingError{err}
	}
	confirming := kube.Confirming(ctx, func(b *object.Body) bool {
		return b.UID == body.UID && len(s.finalizer.ops(b)) == 0 && kept(s.fields, b)
	})
	after, err := a.API.Patch(confirming, a.target(body, ""), types.JSONPatchType, raw)
	if err == nil {
		return after, nil
	}
	refusal := fmt.Errorf("patch the finalizers: %w", err)
	if !apierrors.IsInvalid(err) && !kube.Lost(err) {
		return body, refusal
	}
	// A failed test of the version looks like any other invalid patch, and a write
	// whose response was lost may have succeeded. Read the object to find out.
	now, err := a.reread(ctx, body)
	switch {
	case err != nil:
		return body, fmt.Errorf("%w: %w", refusal, err)
	case len(s.finalizer.ops(now)) == 0 && kept(s.fields, now):
		return now, nil
	case now.ResourceVersion == body.ResourceVersion && apierrors.IsInvalid(refusal):
		return body, refusal // the version matches, so something else is invalid
	}
	return body, apierrors.NewConflict(a.Resource.GVR().GroupResource(), body.Name, refusal)
}

// metadataOnly reports whether the API server drops the map at the path when it
// becomes empty.
func metadataOnly(path string) bool {
	return path == "/metadata/annotations" || path == "/metadata/labels"
}

// ops returns the operations for the finalizer. There are none if the body is as wanted.
func (f Finalizer) ops(body *object.Body) []patch.Op {
	there := body.Finalizers()
	switch {
	case f.Add && !body.Deleting: // the server refuses new finalizers during a deletion
		return patch.AddFinalizer(there, f.Name, f.Former...)
	case f.Remove && (f.Still == nil || f.Still(body)):
		return patch.RemoveFinalizer(there, append([]string{f.Name}, f.Former...)...)
	}
	return nil
}
