// Package apply sends the changes of one turn to the cluster: as few requests
// as possible, in an order that loses nothing if one of them is the last, and
// with the answers that got lost found out.
package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/kind"
)

// API is the part of the cluster's API that is needed.
type API interface {
	Get(context.Context, kube.Target) (*object.Body, error)
	Patch(context.Context, kube.Target, types.PatchType, []byte, ...kube.Param) (*object.Body, error)
}

// Finalizer is what is to happen to the operator's finalizer.
type Finalizer struct {
	Name   string
	Add    bool
	Remove bool
}

// Applier sends changes to objects of one resource.
type Applier struct {
	API      API
	Resource kind.Info
}

// ErrGone tells that the object does not exist any more, so that there was
// nothing to change.
var ErrGone = errors.New("the object does not exist anymore")

// conflicts is how many times a change is made anew on a newer object before
// it is left to the next turn.
const conflicts = 5

// Apply makes the changes and returns the object as it is after them. The
// status goes first, so that the record of what is done, which is in the rest,
// is never there without the results. The finalizer goes with the rest in one
// request, so that neither is there without the other.
//
// On errors, what was already sent stays sent; sending it again is harmless.
func (a Applier) Apply(ctx context.Context, log *slog.Logger, body *object.Body, p *patch.Patch, f Finalizer) (*object.Body, error) {
	after, err := a.merge(ctx, log, body, p, f)
	if apierrors.IsNotFound(err) {
		log.Debug("Patching was skipped: the object does not exist anymore.")
		return body, ErrGone
	}
	return after, err
}

// merge sends the changes, one request for each endpoint. With edits, they are
// made for one version of the object and made anew if it is not the newest.
func (a Applier) merge(ctx context.Context, log *slog.Logger, body *object.Body, p *patch.Patch, f Finalizer) (*object.Body, error) {
	for attempt := 1; ; attempt++ {
		after, err := a.mergeOnce(ctx, log, body, p, f)
		if err == nil || !apierrors.IsConflict(err) || len(p.Edits()) == 0 || attempt == conflicts {
			return after, err
		}
		if body, err = a.reread(ctx, body); err != nil {
			return body, err
		}
	}
}

func (a Applier) mergeOnce(ctx context.Context, log *slog.Logger, body *object.Body, p *patch.Patch, f Finalizer) (*object.Body, error) {
	folded := fold(body, p)
	guarded := len(p.Edits()) > 0
	main, status := folded.Fields(), map[string]any(nil)
	if a.Resource.HasStatus() {
		main, status = folded.Split()
	}
	var err error
	if len(status) > 0 {
		log.Debug("Merge-patching the status with:", "patch", status)
		if body, err = a.send(ctx, log, body, "status", status, guarded); err != nil {
			return body, fmt.Errorf("patch the status: %w", err)
		}
	}
	switch {
	case f.Add || f.Remove:
		return a.finalize(ctx, log, body, main, f)
	case len(main) > 0:
		log.Debug("Merge-patching the resource with:", "patch", main)
		if body, err = a.send(ctx, log, body, "", main, guarded); err != nil {
			return body, fmt.Errorf("patch the object: %w", err)
		}
	}
	return body, nil
}

// fold runs the edits on a copy of the object and makes their effect a part of
// the merge patch. The explicit changes come first, as they were asked for.
func fold(body *object.Body, p *patch.Patch) *patch.Patch {
	if len(p.Edits()) == 0 {
		return p
	}
	edited := patch.Copy(body.Map()).(map[string]any)
	patch.Apply(edited, p.Fields())
	before := patch.Copy(edited).(map[string]any)
	for _, edit := range p.Edits() {
		edit(edited)
	}
	folded := &patch.Patch{}
	for key, v := range p.Fields() {
		folded.Merge(v, key)
	}
	for key, v := range patch.Between(before, edited) {
		folded.Merge(v, key)
	}
	return folded
}

// send sends one merge patch and checks what became of it.
func (a Applier) send(ctx context.Context, log *slog.Logger, body *object.Body, subresource string, fields map[string]any, guarded bool) (*object.Body, error) {
	wanted := fields
	if guarded {
		wanted = patch.Copy(fields).(map[string]any)
		patch.Apply(wanted, map[string]any{"metadata": map[string]any{"resourceVersion": body.ResourceVersion}})
	}
	raw, err := json.Marshal(wanted)
	if err != nil {
		return body, fmt.Errorf("encode the patch: %w", err)
	}
	after, err := a.API.Patch(ctx, a.target(body, subresource), types.MergePatchType, raw)
	if lost(err) {
		after, err = a.settle(ctx, body, err, func(now *object.Body) bool { return len(missing(fields, now)) == 0 })
		if errors.Is(err, errResend) {
			after, err = a.API.Patch(ctx, a.target(body, subresource), types.MergePatchType, raw)
		}
	}
	if err != nil {
		return body, err
	}
	if left := missing(fields, after); len(left) > 0 {
		log.Warn("Merge-patching finished with inconsistencies: the cluster did not keep all that was sent, maybe because the schema of the resource does not have it.", "missing", left.String())
	}
	return after, nil
}

// finalize adds or removes the finalizer along with the other changes, provided
// that the object has not changed since it was read; if it has, it is read
// again.
func (a Applier) finalize(ctx context.Context, log *slog.Logger, body *object.Body, main map[string]any, f Finalizer) (*object.Body, error) {
	var err error
	for range conflicts {
		ops := patch.Ops(body.Map(), main)
		ops = append(ops, f.ops(body)...)
		if len(ops) == 0 {
			return body, nil // done already, or not possible any more
		}
		ops = append([]patch.Op{patch.Unchanged(body.ResourceVersion)}, ops...)
		log.Debug("JSON-patching the resource with:", "patch", ops)
		var raw []byte
		if raw, err = json.Marshal(ops); err != nil {
			return body, fmt.Errorf("encode the patch of finalizers: %w", err)
		}
		var after *object.Body
		after, err = a.API.Patch(ctx, a.target(body, ""), types.JSONPatchType, raw)
		if err == nil {
			return after, nil
		}
		if !apierrors.IsInvalid(err) && !apierrors.IsConflict(err) && !lost(err) {
			return body, fmt.Errorf("patch the finalizers: %w", err)
		}
		// Either the object is newer than we know, or the answer got lost and it
		// may be done: the object itself tells.
		if body, err = a.reread(ctx, body); err != nil {
			return body, err
		}
	}
	return body, fmt.Errorf("patch the finalizers: the object keeps changing: %w", err)
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

// errResend tells that a write whose answer was lost had no effect.
var errResend = errors.New("the write had no effect")

// settle finds out whether a write whose answer was lost had its effect.
func (a Applier) settle(ctx context.Context, body *object.Body, cause error, effective func(*object.Body) bool) (*object.Body, error) {
	now, err := a.reread(ctx, body)
	switch {
	case err != nil:
		return body, fmt.Errorf("find out what became of a write (%w): %w", cause, err)
	case effective(now):
		return now, nil
	}
	return now, errResend
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

func lost(err error) bool {
	var unknown *kube.UnknownOutcomeError
	return errors.As(err, &unknown)
}

// missing is what a merge patch asks for and the object does not have. Maps
// that vanish with their last key are no news.
func missing(fields map[string]any, body *object.Body) diff.Diff {
	return slices.DeleteFunc(diff.Left(fields, body.Map()), func(i diff.Item) bool {
		if len(i.Path) != 2 || i.Path[0] != "metadata" {
			return false
		}
		asked, _ := i.Old.(map[string]any)
		return i.New == nil && slices.Contains([]string{"annotations", "labels", "finalizers"}, i.Path[1]) && onlyNulls(asked)
	})
}

func onlyNulls(fields map[string]any) bool {
	for _, v := range fields {
		if v != nil {
			return false
		}
	}
	return true
}

func (a Applier) target(body *object.Body, subresource string) kube.Target {
	return kube.Target{Info: a.Resource, Namespace: body.Namespace, Name: body.Name, Subresource: subresource}
}
