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
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/fieldpath"
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

// BriefAPI is an API that can answer with nothing but the version.
type BriefAPI interface {
	PatchBriefly(context.Context, kube.Target, types.PatchType, []byte, ...kube.Param) (resourceVersion string, err error)
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
	Log      *slog.Logger

	// Brief tells that nobody needs to know what the object is like after the last
	// write, so that [Applier.Apply] may return a stale body. What the cluster has
	// kept of it is then not checked.
	Brief bool
}

// ErrGone tells that the object does not exist any more, so that there was
// nothing to change.
var ErrGone = errors.New("the object does not exist anymore")

// conflicts is how many times a change is made anew on a newer object before
// it is left to the next turn.
const conflicts = 5

// Apply makes the changes and returns the object as it is after them. What
// handlers asked for goes first, what is remembered of it last or in the same
// request, so that it is never remembered without having been done. A finalizer
// goes with the rest of the object in one request, so that neither is there
// without the other. What would change nothing is not sent.
//
// On errors, what was already sent stays sent; sending it again is harmless. The
// object is then returned as it was last seen, and [Changed] tells whether
// somebody else had changed it.
func (a Applier) Apply(ctx context.Context, body *object.Body, asked, notes *patch.Patch, f Finalizer) (*object.Body, error) {
	var err error
	after, changed := body, false
	for range conflicts {
		if after, err = a.once(ctx, after, asked, notes, f); err == nil {
			return after, nil
		}
		if !apierrors.IsConflict(err) {
			break
		}
		// The object is newer than we know: the edits must be made anew, and it
		// must be the same object still.
		conflict := err
		if after, err = a.reread(ctx, body); err != nil {
			break
		}
		err, changed = conflict, true
	}
	if apierrors.IsNotFound(err) {
		a.Log.Debug("Patching was skipped: the object does not exist anymore.")
		return body, ErrGone
	}
	if changed {
		err = &changedError{err}
	}
	return after, err
}

func (a Applier) once(ctx context.Context, body *object.Body, asked, notes *patch.Patch, f Finalizer) (*object.Body, error) {
	steps := a.plan(fold(body, asked), notes, f)
	edited := len(asked.Edits()) > 0
	for i, s := range steps {
		s.brief = a.Brief && !edited && !slices.ContainsFunc(steps[i+1:], step.needed)
		after, err := a.step(ctx, body, s, edited)
		if err != nil {
			return body, err
		}
		body = after
	}
	return body, nil
}

// step is one request.
type step struct {
	subresource string
	fields      map[string]any
	finalizer   Finalizer
	brief       bool // the answer does not matter
}

func (s step) needed() bool { return len(s.fields) > 0 || s.finalizer.Add || s.finalizer.Remove }

// plan orders the changes into requests.
func (a Applier) plan(asked, notes *patch.Patch, f Finalizer) []step {
	all := asked
	if len(asked.Fields()) == 0 {
		all = notes
	} else if !notes.Empty() {
		all = &patch.Patch{}
		all.Absorb(asked)
		all.Absorb(notes)
	}
	if !a.Resource.HasStatus() {
		return []step{{fields: all.Fields(), finalizer: f}}
	}
	main, status := all.Split()
	if len(main) == 0 && !f.Add && !f.Remove {
		return []step{{subresource: "status", fields: status}}
	}
	_, results := asked.Split()
	_, remembered := notes.Split()
	return []step{
		{subresource: "status", fields: results},
		{fields: main, finalizer: f},
		{subresource: "status", fields: remembered},
	}
}

func (a Applier) step(ctx context.Context, body *object.Body, s step, edited bool) (*object.Body, error) {
	switch {
	case s.finalizer.Add || s.finalizer.Remove:
		return a.finalize(ctx, body, s, edited)
	case kept(s.fields, body):
		return body, nil // it is so already
	}
	what := "resource"
	if s.subresource != "" {
		what = s.subresource
	}
	a.Log.Debug("Merge-patching the "+what+" with:", "patch", a.shown(s.fields))
	after, err := a.merge(ctx, body, s, edited)
	if err != nil {
		return body, fmt.Errorf("patch the %s: %w", what, err)
	}
	return after, nil
}

// fold runs the edits on a copy of the object and makes their effect a part of
// the merge patch. The explicit changes come first, as they were asked for.
func fold(body *object.Body, p *patch.Patch) *patch.Patch {
	if len(p.Edits()) == 0 {
		return p
	}
	edited := fieldpath.Clone(body.Map()).(map[string]any)
	patch.Apply(edited, p.Fields())
	before := fieldpath.Clone(edited).(map[string]any)
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

// merge sends one merge patch and checks what became of it. It is guarded
// against being taken by another object of the same name, which may have been
// created meanwhile, and if it was made for one version, against any other.
func (a Applier) merge(ctx context.Context, body *object.Body, s step, edited bool) (*object.Body, error) {
	key, value := "uid", body.UID
	if edited || s.subresource != "" { // there the server does not look at the uid
		key, value = "resourceVersion", body.ResourceVersion
	}
	raw, err := json.Marshal(guarded(s.fields, key, value))
	if err != nil {
		return body, &encodingError{err}
	}
	ctx = kube.Confirming(ctx, func(b *object.Body) bool { return b.UID == body.UID && kept(s.fields, b) })
	send := func() (*object.Body, error) {
		if api, ok := a.API.(BriefAPI); ok && s.brief {
			version, err := api.PatchBriefly(ctx, a.target(body, s.subresource), types.MergePatchType, raw)
			if err != nil {
				return body, err
			}
			if version == "" { // a server that does not tell it, though it should
				return a.reread(ctx, body)
			}
			return body.At(version), nil
		}
		return a.API.Patch(ctx, a.target(body, s.subresource), types.MergePatchType, raw)
	}
	after, err := send()
	if lost(err) {
		after, err = a.settle(ctx, body, s.fields, err, send)
	}
	if apierrors.IsInvalid(err) { // is it another object that does not take our uid?
		if _, gone := a.reread(ctx, body); apierrors.IsNotFound(gone) {
			return body, gone
		}
	}
	if err != nil {
		return body, err
	}
	if after.Stale() {
		return after, nil
	}
	if !kept(s.fields, after) {
		left := missing(s.fields, after)
		a.Log.Warn("Merge-patching finished with inconsistencies: the cluster did not keep all that was sent, maybe because the schema of the resource does not have it.", "missing", a.shown(left.String()))
	}
	return after, nil
}

// guarded is a merge patch with something to be the same in the metadata.
func guarded(fields map[string]any, key, value string) map[string]any {
	asked, _ := fields["metadata"].(map[string]any)
	metadata := make(map[string]any, len(asked)+1)
	maps.Copy(metadata, asked)
	metadata[key] = value
	whole := make(map[string]any, len(fields)+1)
	maps.Copy(whole, fields)
	whole["metadata"] = metadata
	return whole
}

// shown is what logs show of a change: nothing of secrets.
func (a Applier) shown(v any) any {
	if a.Resource.Kind == "Secret" && a.Resource.Group == "" {
		return "(of a secret)"
	}
	return v
}

func (a Applier) target(body *object.Body, subresource string) kube.Target {
	return kube.Target{Info: a.Resource, Namespace: body.Namespace, Name: body.Name, Subresource: subresource}
}
