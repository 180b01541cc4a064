package gopf

import (
	"fmt"
	"log/slog"
	"time"

	"gopf.dev/gopf/internal/fieldpath"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/registry"
	"gopf.dev/gopf/kind"
)

// Subject is what every handler is told about its object.
type Subject[T Object] struct {
	// Object is this call's own copy of the object. Changing it has no effect:
	// use Patch.
	Object T
	// Resource is what the object was found under.
	Resource kind.Info
	// Patch collects changes to the object. They are sent after the handler has
	// returned, whatever it returned.
	Patch *Patch[T]
	// Log attaches the object's name to every line.
	Log *slog.Logger
	// API is how the handler reaches the cluster.
	API Client
	// Retry is the number of attempts made before this one.
	Retry int
	// Started is the time of the first attempt.
	Started time.Time

	req    *registry.Request
	own    client        // that API is, but for tests
	frozen *droppedPatch // while sub-handlers run
}

func newSubject[T Object](req *registry.Request) (*Subject[T], error) {
	obj, err := decode[T](req.Body)
	if err != nil {
		return nil, err
	}
	s := &Subject[T]{
		Object: obj, Resource: req.Resource, Log: req.Log, Retry: req.Retry, Started: req.Started,
		Patch: &Patch[T]{req.Patch},
		req:   req,
	}
	s.API = apiFor(req, &s.own)
	return s, nil
}

// Raw returns the object as decoded JSON, whatever T has of it. Integers are int64
// and other numbers float64. An integer beyond int64 is a float64 if that has the
// same digits, which holds for all that API servers written in Go send; otherwise
// it is a json.Number. The map is shared: do not change it.
func (s *Subject[T]) Raw() map[string]any { return s.req.Body.Map() }

// Post posts a Kubernetes event about the object, of any type; kubectl shows
// "Normal" and "Warning" ones. It does not wait, and an event that cannot be
// posted is only logged. Repetitions within a minute are posted as one.
func (s *Subject[T]) Post(kind, reason, message string) { s.req.Post(kind, reason, message) }

// Info posts an event of the type Normal, unless Settings.Posting.Level is
// higher; see [Subject.Post].
func (s *Subject[T]) Info(reason, message string) {
	if s.req.PostFrom <= slog.LevelInfo {
		s.Post("Normal", reason, message)
	}
}

// Warn posts an event of the type Warning, unless Settings.Posting.Level is
// higher; see [Subject.Post].
func (s *Subject[T]) Warn(reason, message string) {
	if s.req.PostFrom <= slog.LevelWarn {
		s.Post("Warning", reason, message)
	}
}

// Failure posts an event of the type Error with the text of the error; see
// [Subject.Post].
func (s *Subject[T]) Failure(reason string, err error) {
	if s.req.PostFrom <= slog.LevelError {
		s.Post("Error", reason, err.Error())
	}
}

// SetResult is the value to be stored in the status under the handler's id if
// the handler succeeds. It can be anything JSON can hold.
func (s *Subject[T]) SetResult(v any) {
	if s.frozen != nil {
		s.frozen.complain("the result")
		return
	}
	s.req.Result = v
}

func (s *Subject[T]) lookup(path []string) (any, bool) { return s.req.Body.Lookup(path...) }

// Patch collects changes to an object. Paths are dotted ("spec.size") or JSON
// pointers ("/metadata/labels/app.kubernetes.io~1name").
type Patch[T Object] struct{ p patcher }

// patcher is the part of the engine's patch that users' changes go to.
type patcher interface {
	Set(v any, path ...string)
	Merge(v any, path ...string)
	Edit(patch.Edit)
}

// Set makes the value at the path.
//
// It panics, which is the handler's failure, if the path is malformed or JSON
// cannot hold the value.
func (p *Patch[T]) Set(path string, v any) { p.p.Set(mustJSON(path, v), mustPath(path)...) }

// Remove deletes what is at the path.
func (p *Patch[T]) Remove(path string) { p.p.Set(nil, mustPath(path)...) }

// Status merges the JSON of v, which should be an object, into the status.
func (p *Patch[T]) Status(v any) { p.p.Merge(mustJSON("status", v), "status") }

// Label sets a label.
func (p *Patch[T]) Label(key, value string) { p.p.Set(value, "metadata", "labels", key) }

// Unlabel removes a label.
func (p *Patch[T]) Unlabel(key string) { p.p.Set(nil, "metadata", "labels", key) }

// Annotate sets an annotation.
func (p *Patch[T]) Annotate(key, value string) { p.p.Set(value, "metadata", "annotations", key) }

// Unannotate removes an annotation.
func (p *Patch[T]) Unannotate(key string) { p.p.Set(nil, "metadata", "annotations", key) }

// Edit changes the newest version of the object: fn is called with a copy of
// it, in which labels and annotations are never nil, and what fn changes is
// sent. If somebody else changes the object meanwhile, fn is called again. What
// the object has and T has not, stays.
func (p *Patch[T]) Edit(fn func(T)) {
	p.p.Edit(func(fields map[string]any) { editAs(fields, fn) })
}

// mustJSON is the JSON of a value; one that JSON cannot hold is a mistake in the
// program, reported as the handler's error.
func mustJSON(path string, v any) any {
	decoded, err := asJSON(v)
	if err != nil {
		panic(fmt.Errorf("the value for %s cannot be JSON: %w", path, err))
	}
	return decoded
}

// mustPath reads a path in a handler; a malformed one is a mistake in the
// program, reported as the handler's error.
func mustPath(path string) []string {
	p, err := fieldpath.Parse(path)
	if err != nil {
		panic(err)
	}
	return p
}

// Field finds a value by its path in an object without a type of its own, or in
// those of its parts that the type does not have. It is not found if it is of
// another type than V.
func Field[V any](of interface{ lookup([]string) (any, bool) }, path string) (V, bool) {
	return fieldAs[V](of.lookup(mustPath(path)))
}

// OldField finds a value by its path in the object as it was last handled; see
// [Field].
func OldField[V any](of interface{ lookupOld([]string) (any, bool) }, path string) (V, bool) {
	return fieldAs[V](of.lookupOld(mustPath(path)))
}

func fieldAs[V any](found any, ok bool) (V, bool) {
	var none V
	if !ok {
		return none, false
	}
	if v, ok := found.(V); ok {
		return v, true
	}
	return convert[V](found)
}

// ensureMaps makes labels and annotations never nil for edits.
func ensureMaps[T Object](obj T) {
	if obj.GetLabels() == nil {
		obj.SetLabels(map[string]string{})
	}
	if obj.GetAnnotations() == nil {
		obj.SetAnnotations(map[string]string{})
	}
}
