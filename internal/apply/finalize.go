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

// finalize adds or removes the finalizer along with the other changes, provided
// that the object has not changed since it was read; if it has, it is read
// again, and edits must be made anew.
func (a Applier) finalize(ctx context.Context, body *object.Body, s step, edited bool) (*object.Body, error) {
	fields, f := s.fields, s.finalizer
	var err error
	known := body.ResourceVersion
	tell := func(err error) error {
		if body.ResourceVersion != known {
			return &changedError{err}
		}
		return err
	}
	for range conflicts {
		ops := append(patch.Ops(body.Map(), fields, metadataOnly), f.ops(body)...)
		if len(ops) == 0 {
			return body, nil // done already, or not possible any more
		}
		ops = append([]patch.Op{patch.Unchanged(body.ResourceVersion)}, ops...)
		a.Log.Debug("JSON-patching the resource with:", "patch", a.shown(ops))
		var raw []byte
		if raw, err = json.Marshal(ops); err != nil {
			return body, &encodingError{err}
		}
		var after *object.Body
		uid := body.UID
		confirming := kube.Confirming(ctx, func(b *object.Body) bool {
			return b.UID == uid && len(f.ops(b)) == 0 && len(missing(fields, b)) == 0
		})
		if after, err = a.API.Patch(confirming, a.target(body, ""), types.JSONPatchType, raw); err == nil {
			return after, nil
		}
		if !apierrors.IsInvalid(err) && !apierrors.IsConflict(err) && !lost(err) {
			return body, tell(fmt.Errorf("patch the finalizers: %w", err))
		}
		// Either the object is newer than we know, or the answer got lost and it
		// may be done: the object itself tells.
		refusal, before := err, body.ResourceVersion
		if body, err = a.reread(ctx, body); err != nil {
			return body, tell(fmt.Errorf("patch the finalizers (%w): %w", refusal, err))
		}
		unchanged := body.ResourceVersion == before
		if unchanged && apierrors.IsInvalid(refusal) { // then it is not the version that is wrong
			return body, tell(fmt.Errorf("patch the finalizers: %w", refusal))
		}
		if edited && !unchanged && len(f.ops(body))+len(missing(fields, body)) > 0 {
			// The edits were made for the version before this one.
			return body, apierrors.NewConflict(a.Resource.GVR().GroupResource(), body.Name, refusal)
		}
		err = refusal
	}
	return body, tell(fmt.Errorf("patch the finalizers: the object keeps changing: %w", err))
}

// metadataOnly lets maps of metadata go with their last key, as they do anyway.
func metadataOnly(path string) bool {
	return path == "/metadata/annotations" || path == "/metadata/labels"
}

func (f Finalizer) ops(body *object.Body) []patch.Op {
	there := body.Finalizers()
	switch {
	case f.Add && !body.Deleting: // the server takes no new finalizers for a deletion under way
		return patch.AddFinalizer(there, f.Name)
	case f.Remove:
		return patch.RemoveFinalizer(there, f.Name)
	}
	return nil
}
