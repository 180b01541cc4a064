// Package apply sends the changes of one pass to the API server. It uses as few
// requests as possible, in an order that is safe if the process crashes between two of
// them. If the response to a write is lost, it reads the object to confirm the write.
package apply

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/kind"
)

// API is the part of the Kubernetes API that an [Applier] needs.
type API interface {
	Get(context.Context, kube.Target) (*object.Body, error)
	Patch(context.Context, kube.Target, types.PatchType, []byte, ...kube.Param) (*object.Body, error)
}

// BriefAPI is an [API] that can patch an object without transferring the response
// body. PatchBriefly returns only the new version of the object.
type BriefAPI interface {
	PatchBriefly(context.Context, kube.Target, types.PatchType, []byte, ...kube.Param) (resourceVersion string, err error)
}

// Finalizer is the change to the operator's finalizer in one write.
type Finalizer struct {
	Name   string
	Former []string // former names: Add and Remove also remove them
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
	// Jitter shortens the delays after conflicts. It keeps two writers from colliding again.
	// nil means exact delays.
	Jitter jitter.Source

	// Fresh means that the body passed to [Applier.Apply] is the server's response
	// to our own last write. Only then may a change of a handler be skipped because
	// the body has it already: any other body may be stale.
	Fresh bool

	// Brief means that the caller does not need the response to the last write, so
	// [Applier.Apply] may return a stale body. It then does not verify that write.
	Brief bool

	// Bound, if set, binds the change to the version of the object. It reports
	// whether the change still fits a newer version. If not, [Applier.Apply] sends
	// nothing and returns [ErrSuperseded] and the newer version. May be nil.
	Bound func(now *object.Body) bool

	// Conflicted, if set, is called after a conflict. before is the last state that
	// Apply had seen, and now is the state read after the conflict.
	Conflicted func(before, now *object.Body)
}

// ErrSuperseded means that the change was not sent because it no longer fits the
// object; see [Applier.Bound].
var ErrSuperseded = errors.New("the change no longer fits the object")

// ErrGone means that the object no longer exists, so there was nothing to change.
var ErrGone = errors.New("the object no longer exists")

// conflictDelays are the delays before the retries after conflicts. After one more
// conflict, the caller continues in the object's next turn.
var conflictDelays = [...]time.Duration{0, 50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond}

// ConflictDelay is the delay after the last conflict of a call of [Applier.Apply].
const ConflictDelay = 400 * time.Millisecond

// forbiddenDelay is the delay before the one retry of a forbidden write: updates of
// quotas and permissions take a moment.
const forbiddenDelay = time.Second

// Apply sends the changes and returns the object after them. asked has the changes
// that handlers requested, and notes has the framework's records. asked is sent first.
// notes is sent last or in the same request, so a record never says "done" without the
// changes. A change of the finalizer is sent in one request with the rest of the
// object. A write that would change nothing is not sent; see [Applier.Fresh].
//
// After a conflict, Apply reads the object and applies the changes to its newest
// state. If conflicts continue, Apply returns the last one, and the caller should
// continue after [ConflictDelay]. A forbidden write is retried once, after a second.
//
// After an error, the requests that succeeded have taken effect; sending them again
// is harmless. Apply then returns the last state that it has seen, and [Changed]
// reports whether another client had changed the object.
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
		if a.Conflicted != nil {
			a.Conflicted(after, current)
		}
		if a.Bound != nil && !a.Bound(current) {
			return current, ErrSuperseded
		}
	}
}

// once sends the changes for one state of the object, without retries after conflicts.
func (a Applier) once(ctx context.Context, body *object.Body, asked, notes *patch.Patch, f Finalizer) (*object.Body, error) {
	steps := a.plan(fold(body, asked), notes, f)
	edited := len(asked.Edits()) > 0 || a.Bound != nil // the patch fits this version only
	for i, s := range steps {
		s.brief = a.Brief && len(asked.Edits()) == 0 && !slices.ContainsFunc(steps[i+1:], step.needed)
		after, sent, err := a.step(ctx, body, s, edited)
		if err != nil {
			return after, err
		}
		body, a.Fresh = after, a.Fresh || sent
		if body.Deleting && f.Remove && len(body.Finalizers()) == 0 {
			return body, nil // the object is gone, and so is its status
		}
	}
	return body, nil
}

// step is one request.
type step struct {
	subresource string
	fields      map[string]any
	asked       bool // handlers requested some of the fields
	finalizer   Finalizer
	brief       bool // the response body may be skipped
}

// needed reports whether the step changes anything.
func (s step) needed() bool { return len(s.fields) > 0 || s.finalizer.Add || s.finalizer.Remove }

// plan orders the changes into requests.
func (a Applier) plan(asked, notes *patch.Patch, f Finalizer) []step {
	users := len(asked.Fields()) > 0
	if !a.Resource.HasStatus() {
		return []step{{fields: joint(asked.Fields(), notes.Fields()), asked: users, finalizer: f}}
	}
	askedMain, results := asked.Split()
	notesMain, remembered := notes.Split()
	main := joint(askedMain, notesMain)
	if len(main) == 0 && !f.Add && !f.Remove {
		return []step{{subresource: "status", fields: joint(results, remembered), asked: users}}
	}
	return []step{
		{subresource: "status", fields: results, asked: true},
		{fields: main, asked: len(askedMain) > 0, finalizer: f},
		{subresource: "status", fields: remembered},
	}
}

// joint returns one merge patch with the changes of both. It must not be modified.
func joint(asked, notes map[string]any) map[string]any {
	switch {
	case len(asked) == 0:
		return notes
	case len(notes) == 0:
		return asked
	}
	both := maps.Clone(asked)
	for key, note := range notes {
		a, isMap := asked[key].(map[string]any)
		if b, ok := note.(map[string]any); ok && isMap {
			both[key] = joint(a, b)
		} else {
			both[key] = note
		}
	}
	return both
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

// fold returns the patch with its edits converted to explicit changes of the body.
func fold(body *object.Body, p *patch.Patch) *patch.Patch {
	if len(p.Edits()) == 0 {
		return p
	}
	fields := body.Map
	if !p.EditsWhole() {
		fields = func() map[string]any { return statusOf(body) }
	}
	folded := &patch.Patch{}
	folded.Merge(p.Fold(fields))
	return folded
}

// statusOf returns the object with nothing but its status.
func statusOf(body *object.Body) map[string]any {
	status, ok := body.Lookup("status")
	if !ok {
		return map[string]any{}
	}
	return map[string]any{"status": status}
}

// merge sends one merge patch and checks that the server kept it. The patch contains
// the uid, because it must not change a new object with the same name. If it fits only
// one version of the object, it contains that version instead.
func (a Applier) merge(ctx context.Context, body *object.Body, s step, edited bool) (*object.Body, error) {
	key, value := "uid", body.UID
	if edited || s.subresource != "" { // the server ignores the uid in patches of subresources
		key, value = "resourceVersion", body.ResourceVersion
	}
	raw, err := jsonvalue.Encode(guarded(s.fields, key, value))
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
			if version == "" { // the server should return it, but did not
				return a.reread(ctx, body)
			}
			return body.At(version), nil
		}
		return a.API.Patch(ctx, a.target(body, s.subresource), types.MergePatchType, raw)
	}
	after, err := send()
	if kube.Lost(err) {
		after, err = a.confirm(ctx, body, s.fields, err, send)
	}
	if err != nil && apierrors.IsInvalid(err) { // another object of the same name refuses our uid
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

// guarded returns a copy of a merge patch with a precondition in the metadata: the
// server refuses the patch if the object has another value there.
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

// shown returns a change as a log value. It hides Secrets.
func (a Applier) shown(v any) any {
	if a.Resource.Kind == "Secret" && a.Resource.Group == "" {
		return "(of a secret)"
	}
	return v
}

func (a Applier) target(body *object.Body, subresource string) kube.Target {
	return kube.Target{Info: a.Resource, Namespace: body.Namespace, Name: body.Name, Subresource: subresource}
}
