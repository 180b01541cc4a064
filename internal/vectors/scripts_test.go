package vectors_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/process"
	"gopf.dev/gopf/storage"
)

// script is the operator of a transcript.
type script struct {
	handlers  handler.Set
	watchers  handler.Set
	progress  storage.Progress // nil for the default
	base      storage.Base     // nil for the default
	lifecycle gopf.Lifecycle   // nil for the default
	endless   bool             // the transcript is cut off
	// differs makes of what Kopf does what we do, on purpose.
	differs func([]cycle, *transcript)
}

func (s script) config() process.Config {
	settings := gopf.DefaultSettings()
	c := process.Config{
		Progress: settings.Persistence.Progress, Base: settings.Persistence.Base, Finalizer: settings.Persistence.Finalizer,
		Lifecycle: inEngine(settings.Execution.Lifecycle), DefaultBackoff: settings.Execution.DefaultBackoff,
		ErrorDelays: settings.Queueing.ErrorDelays, WriteGrace: time.Second,
	}
	if s.progress != nil {
		c.Progress = s.progress
	}
	if s.base != nil {
		c.Base = s.base
	}
	if s.lifecycle != nil {
		c.Lifecycle = inEngine(s.lifecycle)
	}
	return c
}

// inEngine has a lifecycle of the public API choose for the engine.
func inEngine(l gopf.Lifecycle) handler.Lifecycle {
	return func(candidates []handler.Due) (chosen []handler.Due) {
		var due []gopf.Due
		for _, c := range candidates {
			due = append(due, gopf.Due(c))
		}
		for _, d := range l(due) {
			chosen = append(chosen, handler.Due(d))
		}
		return chosen
	}
}

type body = func(context.Context, *handler.Request) error

// on declares a handler as Kopf's decorator of that name does.
func on(decorator, id string, fn body, options ...func(*handler.Handler)) *handler.Handler {
	var filters map[string]any
	if decorator == "field" {
		filters = map[string]any{"field": "spec"} // until the option says which
	}
	h := handlerOf(decorator, filters)
	h.ID, h.Call = id, fn
	for _, o := range options {
		o(h)
	}
	return h
}

func field(path string) func(*handler.Handler) {
	return func(h *handler.Handler) {
		h.Change = handlerOf("update", map[string]any{"field": path}).Change
		h.ID += "/" + path
	}
}

func label(key, value string) func(*handler.Handler) {
	return func(h *handler.Handler) {
		h.Criteria = handlerOf("create", map[string]any{"labels": map[string]any{key: value}}).Criteria
	}
}

func retries(n int) func(*handler.Handler) {
	return func(h *handler.Handler) { h.Limits.Retries = handler.Some(n) }
}

func optional(h *handler.Handler)    { h.Mandatory = false }
func deletedToo(h *handler.Handler)  { h.Deleted = true }
func alsoUpdates(h *handler.Handler) { h.Reasons[cause.Update] = true }

func succeed(context.Context, *handler.Request) error { return nil }

func result(v any) body {
	return func(_ context.Context, r *handler.Request) error { r.Result = v; return nil }
}

func temporary(text string, delay time.Duration) error {
	return &handler.TemporaryError{Err: errors.New(text), Delay: handler.Some(delay)}
}

// failFirst fails as many times, then succeeds.
func failFirst(times int, err error) body {
	return func(_ context.Context, r *handler.Request) error {
		if r.Retry < times {
			return err
		}
		return nil
	}
}

func always(err error) body {
	return func(context.Context, *handler.Request) error { return err }
}

// subs runs sub-handlers, given by their own ids.
func subs(handlers ...*handler.Handler) body {
	return func(ctx context.Context, r *handler.Request) error {
		var named []*handler.Handler
		for _, h := range handlers {
			copied := *h
			copied.ID = r.Handler.ID + "/" + h.ID
			named = append(named, &copied)
		}
		return r.RunSubs(ctx, named, handler.SubOptions{})
	}
}

// difference is a result that tells the field before and after.
func difference(_ context.Context, r *handler.Request) error {
	old, _ := jsonvalue.Lookup(r.Cause.Old, r.Handler.Change.Path...)
	now, _ := jsonvalue.Lookup(r.Cause.New, r.Handler.Change.Path...)
	var items []any
	for _, i := range r.Handler.Narrow(r.Cause).Diff {
		path := append([]string{}, i.Path...)
		items = append(items, []any{string(i.Op), path, i.Old, i.New})
	}
	r.Result = map[string]any{"old": old, "new": now, "diff": items}
	return nil
}

func life() handler.Set {
	return handler.Set{on("create", "cfn", succeed), on("update", "ufn", difference, field("spec.field")), on("delete", "dfn", succeed)}
}

const longID = "a_very_long_handler_identifier_that_exceeds_the_limits_of_63_chars"

var scripts = map[string]script{
	"create with one handler":                                                                    {handlers: handler.Set{on("create", "create_fn", result(map[string]any{"done": true}))}},
	"create with two handlers, default asap lifecycle":                                           {handlers: handler.Set{on("create", "a", succeed), on("create", "b", result("res"))}},
	"create with two handlers, all_at_once lifecycle":                                            {handlers: handler.Set{on("create", "a", succeed), on("create", "b", result("res"))}, lifecycle: gopf.AllAtOnce},
	"create with temporary errors (delay=10) twice":                                              {handlers: handler.Set{on("create", "fn", failFirst(2, temporary("not yet", 10*time.Second)))}},
	"create with sub-handlers, asap":                                                             {handlers: handler.Set{on("create", "fn", subs(on("create", "sub1", result("x")), on("create", "sub2", failFirst(1, temporary("sub", 5*time.Second)))))}},
	"full life: create, update a field, update another field, delete":                            {handlers: life()},
	"same with the status subresource":                                                           {handlers: life()},
	"finalizer JSON patch conflicts once (422), then a newer event arrives":                      {handlers: life()},
	"create fails by retries=2, default backoff 60":                                              {handlers: handler.Set{on("create", "cfn", always(errors.New("boom")), retries(2))}},
	"custom prefix with the marker":                                                              {handlers: handler.Set{on("create", "a", succeed), on("create", "b", succeed)}, progress: storage.NewAnnotationProgress("my-op.example.com"), base: storage.NewAnnotationBase("my-op.example.com")},
	"operator restart: resume a known object":                                                    {handlers: handler.Set{on("resume", "rfn", succeed), on("create", "cfn", succeed)}},
	"operator restart: listed object without the diff-base is a creation, no resuming":           {handlers: handler.Set{on("resume", "rfn", succeed), on("create", "cfn", succeed)}},
	"operator restart: resume mixed with an update":                                              {handlers: handler.Set{on("resume", "rfn", succeed), on("update", "ufn", succeed)}},
	"deletion supersedes an unfinished creation":                                                 {handlers: handler.Set{on("create", "cfn", succeed), on("delete", "dfn", succeed)}},
	"only an event handler with a result":                                                        {watchers: handler.Set{on("event", "ev", result(map[string]any{"seen": 1}))}, differs: quietEvents},
	"stealth mode: filters mismatch":                                                             {handlers: handler.Set{on("create", "cfn", succeed, label("x", "y"))}},
	"creation with only update handlers: diff-base is stored silently":                           {handlers: handler.Set{on("update", "ufn", succeed)}},
	"leftover finalizer with no handlers requiring it":                                           {handlers: handler.Set{on("delete", "dfn", succeed, optional)}},
	"field handler on status.phase":                                                              {handlers: handler.Set{on("field", "ffn", succeed, field("status.phase"))}},
	"handler patches spec: causes an update in the next cycle":                                   {handlers: handler.Set{on("create", "cfn", patchSpec), on("update", "ufn", succeed)}},
	"long handler id writes V1 and V2 keys":                                                      {handlers: handler.Set{on("create", longID, succeed), on("create", "b", succeed)}},
	"deletion with a temporary error; other finalizers present":                                  {handlers: handler.Set{on("delete", "dfn", failFirst(1, temporary("wait", 3*time.Second)))}},
	"deletion of an object without our finalizer (FREE)":                                         {handlers: handler.Set{on("create", "cfn", succeed)}},
	"operator restart: resume(deleted=True) mixed with a deletion":                               {handlers: handler.Set{on("resume", "rfn", succeed, deletedToo), on("resume", "rfn2", succeed), on("delete", "dfn", succeed)}, lifecycle: gopf.AllAtOnce},
	"temporary error with delay=None: instant retries (limited to 3 cycles here)":                {handlers: handler.Set{on("create", "cfn", always(&handler.TemporaryError{Err: errors.New("x")}))}, endless: true},
	"long sleeping is capped to 600s with a touch (limited to 4 cycles here)":                    {handlers: handler.Set{on("create", "cfn", always(temporary("x", 2000*time.Second)))}},
	"update supersedes an unfinished creation? No: without the diff-base it is still a creation": {handlers: handler.Set{on("create", "fn", succeed, alsoUpdates)}},
	"re-purposing: an unfinished update becomes the deletion of the same handler id":             {handlers: handler.Set{on("update", "fn", succeed), on("delete", "fn", succeed)}, differs: newPurposeNewStart},
	"QUIRK: leftovers of another purpose purge ALL records, the unchanged succeeded record of the current purpose is lost and its handler is re-executed": {handlers: handler.Set{on("update", "a", succeed), on("update", "b", failFirst(1, temporary("x", time.Second))), on("create", "c", succeed)}, differs: leftoversOnly},
	"QUIRK: every pass over unfinished sub-handlers counts as a retry of the parent":                                                                      {handlers: handler.Set{on("create", "fn", subs(on("create", "1", succeed), on("create", "2", succeed), on("create", "3", succeed), on("create", "4", succeed)), retries(2))}},
	"a permanently failed sub-handler does not fail the parent":                                                                                           {handlers: handler.Set{on("create", "fn", subs(on("create", "bad", always(&handler.PermanentError{Err: errors.New("bad")})), on("create", "good", result(map[string]any{"x": 1}))))}, lifecycle: gopf.AllAtOnce},
	"nested sub-handlers: subrefs of all levels at each level":                                                                                            {handlers: handler.Set{on("create", "fn", subs(on("create", "sub", subs(on("create", "deep", failFirst(1, temporary("deep", 7*time.Second)))))))}},
	"status progress storage": {handlers: handler.Set{on("create", "a", succeed), on("create", "b", succeed)}, progress: storage.NewStatusProgress(storage.DefaultName)},
	"takeover from Kopf<1.44: progress both in annotations & status": {handlers: handler.Set{on("create", "a", failFirst(1, temporary("x", time.Second)))}},
}

func patchSpec(_ context.Context, r *handler.Request) error {
	r.Patch.Set("added-by-handler", "spec", "extra")
	return nil
}

// newPurposeNewStart: what was done for one reason says nothing about another
// one, so that the deletion handler is called (rule 1). Kopf skips handlers that
// have succeeded before.
func newPurposeNewStart(cycles []cycle, want *transcript) {
	for _, c := range cycles {
		for _, line := range c.Logs {
			if !strings.HasPrefix(line[1], "Deletion is processed") {
				continue
			}
			processed := slices.IndexFunc(want.logs, func(l [2]string) bool { return strings.HasPrefix(line[1], l[1]) })
			for _, id := range succeeded(c.Event.Object) {
				want.calls = append(want.calls, call{c.At, id})
				want.logs = slices.Insert(want.logs, processed, [2]string{"INFO", "Handler '" + id + "' succeeded."})
			}
		}
	}
}

// quietEvents: the successes of event handlers are logged at DEBUG (rule 29).
func quietEvents(_ []cycle, want *transcript) {
	want.logs = slices.DeleteFunc(want.logs, func(line [2]string) bool {
		return line[0] == "INFO" && strings.HasSuffix(line[1], "' succeeded.")
	})
}

// leftoversOnly: only what belongs to another reason is purged, so that nothing
// that is done is done again. The states before the last one differ in
// the records that Kopf purges.
func leftoversOnly(cycles []cycle, want *transcript) {
	for _, id := range succeeded(cycles[0].Event.Object) {
		want.calls = slices.DeleteFunc(want.calls, func(c call) bool { return c.id == id })
		want.logs = slices.DeleteFunc(want.logs, func(l [2]string) bool { return strings.HasPrefix(l[1], "Handler '"+id+"'") })
	}
	want.states = want.states[len(want.states)-1:]
}

// succeeded are the ids of handlers that have succeeded, by the records on the
// object.
func succeeded(fields map[string]any) (ids []string) {
	for key, v := range stringMap(stringMap(fields["metadata"])["annotations"]) {
		var record struct{ Success bool }
		if text, ok := v.(string); ok && json.Unmarshal([]byte(text), &record) == nil && record.Success {
			_, id, _ := strings.Cut(key, "/")
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
