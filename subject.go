package gopf

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"gopf.dev/gopf/client"
	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

// Subject is the part that the arguments of all object handlers have in common: the
// object, and the means to act on it. [Change], [WatchEvent], [Daemon], [Tick] and [Review]
// embed it. Filters and index functions get a Subject.
//
// It belongs to one call. Its methods, and those of Patch, are not safe for concurrent
// use.
type Subject[T Object] struct {
	// Object is a copy of the object for this call. Modifying it has no effect: use
	// Patch. See also [ExecutionSettings.ReportLostEdits].
	Object T
	// Resource is the resource of the object: group, version, plural, kind, scope.
	Resource kind.Info
	// Patch collects changes to the object. They are sent after the handler has
	// returned, even with an error. Patches of filters, index functions and validating
	// reviews are discarded.
	Patch *Patch[T]
	// Log is a logger that adds the object to every line.
	Log *slog.Logger
	// API is a client for the cluster with the operator's credentials.
	API client.Client
	// Retry is the number of earlier attempts: 0 in the first call.
	Retry int
	// Started is the time of the first attempt.
	Started time.Time

	req    *handler.Request
	own    apiclient.Client // the value of API, except in tests
	frozen *droppedPatch    // while sub-handlers run

	flushed    bool // a part of the patch was sent already
	conditions int  // set by the call
}

func newSubject[T Object](req *handler.Request) (*Subject[T], error) {
	obj, err := decode[T](req.Body)
	if err != nil {
		return nil, err
	}
	s := &Subject[T]{
		Object: obj, Resource: req.Resource, Log: req.Log, Retry: req.Retry, Started: req.Started,
		Patch: &Patch[T]{p: req.Patch, body: req.Body, hold: req.Hold},
		req:   req,
	}
	s.API = apiFor(req, &s.own)
	return s, nil
}

// Raw returns the whole object as decoded JSON, including fields that T lacks. Integers
// are int64 and other numbers float64. An integer beyond int64 is a float64 if that has
// the same digits, which holds for everything that API servers written in Go send;
// otherwise it is a json.Number. The map is shared: do not modify it.
func (s *Subject[T]) Raw() map[string]any { return s.req.Body.Map() }

// Event posts a Kubernetes event about the object, which kubectl describe shows. To
// write a log line, use Log. The message is formatted as by [fmt.Sprintf].
//
//	c.Event(gopf.Normal, "Resized", "The size is %d.", c.Object.Spec.Size)
//	c.Event(gopf.Failure, "ResizeFailed", "The size stays: %v", err)
//
// Event does not block, and a failure is only logged. Repetitions of an event within a
// minute are combined into one with a count. Messages longer than 1,024 characters are
// shortened. Events below [PostingSettings.Level] are not posted, and none are if
// [PostingSettings.Enabled] is false. For events about other objects, use
// [client.Client.Event].
func (s *Subject[T]) Event(t client.EventType, reason, format string, args ...any) {
	if apiclient.Posted(t, s.req.PostFrom) {
		s.req.Post(string(t), reason, fmt.Sprintf(format, args...))
	}
}

// The types of Kubernetes events, for [Subject.Event]. They are posted unless
// [PostingSettings.Level] is above INFO, WARN or ERROR, respectively.
const (
	Normal  = client.Normal  // for information
	Warning = client.Warning // about possible problems
	Failure = client.Failure // about errors; the type is "Error", as in Kopf
)

// SetResult sets the value that is stored in the status under the handler's id if the
// handler succeeds. v must be encodable as JSON; otherwise the handler fails. A JSON
// object is merged into the existing value, and any other value replaces it. The schema
// of the custom resource must allow the field.
func (s *Subject[T]) SetResult(v any) {
	if s.frozen != nil {
		s.frozen.complain("the result")
		return
	}
	s.req.Result = v
}

func (s *Subject[T]) lookup(path []string) (any, bool) { return s.req.Body.Lookup(path...) }

// Patch collects changes to an object. The operator sends them after the handler has
// returned, with or without an error, in as few requests as possible and before or
// together with the handler's record. It retries conflicts and outages without calling
// the handler again. If the API server rejects the changes, the handler fails with that
// error.
//
// Paths are dotted ("spec.size"), or JSON pointers for keys that contain dots
// ("/metadata/labels/app.kubernetes.io~1name"). A malformed path, or a value that JSON
// cannot encode, panics, which fails the handler.
//
//	c.Patch.Set("spec.size", 2)
//	c.Patch.MergeStatus(map[string]any{"phase": "Ready"})
//	c.Patch.Edit(func(db *Database) { db.Spec.Users = append(db.Spec.Users, "root") })
type Patch[T Object] struct {
	p       patcher
	body    *object.Body
	current func() *object.Body // returns a newer version than body. May be nil.
	hold    handler.Hold        // nil means that it is not known how much memory there is
}

const (
	// fewNested is the number of objects in paths for which a patch asks for no memory, and the step
	// in which it asks. Handlers may put texts of an object into paths: "a.a.a" has an object for two bytes.
	fewNested = 1000
	// nestedMemory is the memory of one, with its copies until the patch is sent, in bytes.
	nestedMemory = 1 << 10
	// mostNested limits them for handlers that cannot ask: of reviews, and daemons.
	mostNested = 10_000
)

// set sets a value at a path. It panics if there is no memory for it.
func (p *Patch[T]) set(v any, path []string) {
	made, all := p.p.SetNested(v, path)
	if all/fewNested == (all-made)/fewNested {
		return
	}
	if p.hold == nil && all > mostNested || p.hold != nil && !p.hold(context.Background(), "patch", all*nestedMemory, true, false) {
		panic(fmt.Errorf("there is no memory for a patch with %d objects in its paths; merge a map instead, or increase the memory limit of the operator", all))
	}
}

// maxTexts limits the texts of all values in a patch, in bytes, because API servers accept no larger
// request. Values may share one text of an object, but each has a copy of it in the patch.
const maxTexts = 3 << 20

// value returns the JSON of a value. It panics if the patch would become too large.
func (p *Patch[T]) value(path string, v any) any {
	p.charge(jsonvalue.TextSize(v, maxTexts))
	return mustJSON(path, v)
}

func (p *Patch[T]) charge(bytes int) {
	if !p.p.Charge(bytes, maxTexts) {
		panic(fmt.Errorf("the changes of the handler have more than %d MiB, and API servers accept no larger request", maxTexts>>20))
	}
}

// patcher is the part of the engine's patch that records the user's changes.
type patcher interface {
	SetNested(v any, path []string) (made, all int)
	Charge(bytes, limit int) (ok bool)
	Merge(v any, path ...string)
	Join(part any, edit func(fields map[string]any, parts []any))
}

// Set sets the value at the path, creating parent objects if necessary. Objects are
// merged with the existing ones, as in a JSON merge patch; lists are replaced. nil
// removes the field.
func (p *Patch[T]) Set(path string, v any) { p.set(p.value(path, v), mustPath(path)) }

// Remove removes the field at the path. It is no error if there is none.
func (p *Patch[T]) Remove(path string) { p.set(nil, mustPath(path)) }

// MergeStatus merges the JSON of v, a struct or a map, into the status. Keys with null
// values are removed, and other keys of the status are kept. It cannot empty a field
// that v omits because of omitempty: use [Patch.SetStatus] for that.
func (p *Patch[T]) MergeStatus(v any) { p.p.Merge(p.value("status", v), "status") }

// SetStatus replaces the status, as far as the type of v knows it. v is a struct or a
// pointer to one. Fields of the type that v leaves empty are removed; fields that the
// type lacks are kept, such as results of handlers and fields of other clients. Only
// the differences from the last known status are sent.
//
//	c.Patch.SetStatus(DatabaseStatus{Phase: "Ready"}) // removes status.error
//
// For a map, SetStatus panics, because a map has no fields to leave empty: use
// [Patch.MergeStatus].
func (p *Patch[T]) SetStatus(v any) {
	body := p.body
	if p.current != nil {
		body = p.current()
	}
	p.charge(jsonvalue.TextSize(v, maxTexts))
	if changes := statusChanges(body, v); len(changes) > 0 {
		p.p.Merge(changes, "status")
	}
}

// Label sets a label.
func (p *Patch[T]) Label(key, value string) { p.set(value, []string{"metadata", "labels", key}) }

// Unlabel removes a label.
func (p *Patch[T]) Unlabel(key string) { p.set(nil, []string{"metadata", "labels", key}) }

// Annotate sets an annotation.
func (p *Patch[T]) Annotate(key, value string) {
	p.set(value, []string{"metadata", "annotations", key})
}

// Unannotate removes an annotation.
func (p *Patch[T]) Unannotate(key string) { p.set(nil, []string{"metadata", "annotations", key}) }

// Edit modifies the newest version of the object, for changes that depend on its
// current value, such as appending to a list. fn gets a copy, in which labels and
// annotations are never nil, and its modifications are sent. On a conflict with another
// client, fn is called again with the newer version, so it must not have other effects.
// Edits run after all other changes of the patch. Fields that T lacks are kept. This holds for items of
// lists that are equal, have the same name, or are at the same place of a list of the same length.
func (p *Patch[T]) Edit(fn func(T)) {
	p.p.Join(fn, editAs[T])
}

// mustJSON returns the JSON of a value. It panics if there is none: the caller has a
// bug, and the panic becomes the error of the handler.
func mustJSON(path string, v any) any {
	decoded, err := asJSON(v)
	if err != nil {
		panic(fmt.Errorf("encode the value for %s as JSON: %w", path, err))
	}
	return decoded
}

// mustPath parses a path that a handler passed. It panics if the path is malformed,
// which becomes the error of the handler.
func mustPath(path string) []string {
	p, err := jsonvalue.ParsePath(path)
	if err != nil {
		panic(err)
	}
	return p
}

// ValueAt returns the value at a path of the object, including fields that its Go type
// lacks. ok is false if there is no value, or if it does not fit V. A value does not fit either if
// decoding it would take far more time or memory than its JSON: a quantity with an exponent of more
// than 3 digits, a list of thousands of nulls as structs, or keys of more than 4 KiB on a path.
//
//	size, ok := gopf.ValueAt[int](c, "spec.size")
func ValueAt[V any](of interface{ lookup([]string) (any, bool) }, path string) (V, bool) {
	return fieldAs[V](of.lookup(mustPath(path)))
}

// OldValueAt returns the value at a path of the last handled configuration; see [ValueAt].
func OldValueAt[V any](of interface{ lookupOld([]string) (any, bool) }, path string) (V, bool) {
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

// ensureMaps sets nil labels and annotations to empty maps.
func ensureMaps[T Object](obj T) {
	if obj.GetLabels() == nil {
		obj.SetLabels(map[string]string{})
	}
	if obj.GetAnnotations() == nil {
		obj.SetAnnotations(map[string]string{})
	}
}
