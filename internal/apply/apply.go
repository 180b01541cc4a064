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
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/jitter"
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

// Finalizer is the change to the operator's finalizer in one write.
type Finalizer struct {
	Name   string
	Add    bool
	Remove bool
	// Still reports whether Remove is right for a newer state of the object, which
	// was read after a conflict. nil means that it is right for every state.
	Still func(*object.Body) bool
}

// Applier sends changes to objects of one resource.
type Applier struct {
	API      API
	Resource kind.Info
	Log      *slog.Logger
	// Jitter shortens the delays after conflicts, so that two writers do not meet again.
	// nil means exact delays.
	Jitter jitter.Source

	// Fresh says that the body passed to [Applier.Apply] is the server's response
	// to our own last write. Only then may a change that a handler asked for be
	// skipped because the body has it already: any other body may be stale.
	Fresh bool

	// Brief says that the caller does not need the object as it is after the last
	// write, so [Applier.Apply] may return a stale body. What the API server kept
	// of that write is then not checked.
	Brief bool

	// Bound, if set, binds the change to the version of the object. It reports
	// whether the change still fits a newer version; if not, the change is not
	// made, and [Applier.Apply] returns [ErrSuperseded] and the newer version.
	Bound func(now *object.Body) bool
}

// ErrSuperseded means that the change was not made because it no longer fits the
// object; see [Applier.Bound].
var ErrSuperseded = errors.New("the change no longer fits the object")

// ErrGone says that the object no longer exists, so there was nothing to change.
var ErrGone = errors.New("the object no longer exists")

// conflictDelays are the delays before a change is made again after a conflict.
// The caller continues after one more conflict, in the object's next turn.
var conflictDelays = [...]time.Duration{0, 50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond}

// ConflictDelay is the delay after the last conflict of a call of [Applier.Apply].
const ConflictDelay = 400 * time.Millisecond

// forbiddenDelay is the delay before a forbidden write is sent once more: quotas
// and permissions take a moment to be updated.
const forbiddenDelay = time.Second

// Apply makes the changes and returns the object as it is after them. The changes
// that handlers asked for are sent first. The records are sent last or in the same
// request, so a record never says "done" without the changes. A finalizer goes with
// the rest of the object in one request. A write that would change nothing is not
// sent; see [Applier.Fresh].
//
// After a conflict the object is read, and the changes are made on the newest
// state. If conflicts go on, the last of them is returned, and the caller should
// continue after [ConflictDelay]. A forbidden write is sent twice, a second apart.
//
// After an error, the requests that succeeded have taken effect; sending them again
// is harmless. The object is then returned as it was last seen, and [Changed]
// reports whether another client had changed it.
func (a Applier) Apply(ctx context.Context, body *object.Body, asked, notes *patch.Patch, f Finalizer) (*object.Body, error) {
	current, changed, forbidden := body, false, false
	if a.Bound != nil && !a.Bound(body) {
		return body, ErrSuperseded
	}
	for conflicts := 0; ; {
		after, err := a.once(ctx, current, asked, notes, f)
		switch {
		case err == nil:
			return after, nil
		case apierrors.IsNotFound(err):
			a.Log.Debug("Patching was skipped: the object does not exist anymore.")
			return body, ErrGone
		case apierrors.IsForbidden(err) && !forbidden && kube.Sleep(ctx, forbiddenDelay) == nil:
			current, forbidden = after, true
			continue
		case !apierrors.IsConflict(err) || conflicts == len(conflictDelays):
			if changed {
				err = &changedError{err}
			}
			return after, err
		}
		delay := a.Jitter.Shorten(conflictDelays[conflicts], jitter.Slight)
		conflicts++
		if delay > 0 && kube.Sleep(ctx, delay) != nil {
			return after, err
		}
		conflict := err
		if current, err = a.reread(ctx, after); err != nil {
			if apierrors.IsNotFound(err) {
				return body, ErrGone
			}
			return after, fmt.Errorf("after a conflict (%w): %w", conflict, err)
		}
		// A body that was read just now is as good as a response.
		changed, a.Fresh = true, true
		if a.Bound != nil && !a.Bound(current) {
			return current, ErrSuperseded
		}
	}
}

func (a Applier) once(ctx context.Context, body *object.Body, asked, notes *patch.Patch, f Finalizer) (*object.Body, error) {
	steps := a.plan(fold(body, asked), notes, f)
	edited := len(asked.Edits()) > 0 || a.Bound != nil // for this version only
	for i, s := range steps {
		s.brief = a.Brief && len(asked.Edits()) == 0 && !slices.ContainsFunc(steps[i+1:], step.needed)
		after, sent, err := a.step(ctx, body, s, edited)
		if err != nil {
			return after, err
		}
		body, a.Fresh = after, a.Fresh || sent
		if body.Deleting && f.Remove && len(body.Finalizers()) == 0 {
			return body, nil // it is gone, and so is its status
		}
	}
	return body, nil
}

// step is one request.
type step struct {
	subresource string
	fields      map[string]any
	asked       bool // some of the fields were asked for by handlers
	finalizer   Finalizer
	brief       bool // the response does not matter
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
	users := len(asked.Fields()) > 0
	if !a.Resource.HasStatus() {
		return []step{{fields: all.Fields(), asked: users, finalizer: f}}
	}
	main, status := all.Split()
	if len(main) == 0 && !f.Add && !f.Remove {
		return []step{{subresource: "status", fields: status, asked: users}}
	}
	askedMain, results := asked.Split()
	_, remembered := notes.Split()
	return []step{
		{subresource: "status", fields: results, asked: true},
		{fields: main, asked: len(askedMain) > 0, finalizer: f},
		{subresource: "status", fields: remembered},
	}
}

// step sends one request, unless it would change nothing. It reports whether it
// sent one.
func (a Applier) step(ctx context.Context, body *object.Body, s step, edited bool) (after *object.Body, sent bool, err error) {
	switch {
	case s.finalizer.Add || s.finalizer.Remove:
		after, err = a.finalize(ctx, body, s)
		return after, err == nil, err
	case len(s.fields) == 0, (a.Fresh || !s.asked) && kept(s.fields, body):
		return body, false, nil
	}
	what := "resource"
	if s.subresource != "" {
		what = s.subresource
	}
	a.Log.Debug("Merge-patching the "+what+" with:", "patch", a.shown(s.fields))
	after, err = a.merge(ctx, body, s, edited)
	if err != nil {
		return body, false, fmt.Errorf("patch the %s: %w", what, err)
	}
	return after, true, nil
}

// fold returns the patch with the edits as explicit changes of the body.
func fold(body *object.Body, p *patch.Patch) *patch.Patch {
	if len(p.Edits()) == 0 {
		return p
	}
	folded := &patch.Patch{}
	folded.Merge(p.Fold(body.Map()))
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
