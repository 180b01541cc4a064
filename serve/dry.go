package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"slices"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/suggest"
	"gopf.dev/gopf/serve/call"
	"gopf.dev/gopf/serve/spec"
)

// Trial is a call of one handler without a cluster, for tests and for development.
type Trial struct {
	Handler  string           // its id
	Object   map[string]any   // the object
	Old      map[string]any   // the object before the change. nil means a creation.
	Reason   string           // "" means the one that follows from Object and Old
	Children []map[string]any // live children, for reconcile handlers
	Memo     json.RawMessage
	Retry    int
	User     map[string]any // of an admission request
	Log      io.Writer      // the log of the handler. nil means none.
}

// Handlers are the compiled handlers of a file.
type Handlers struct{ set *set }

// Open compiles the handlers of a file for [Handlers.Try]. Close ends their programs.
func Open(files fs.FS, file string, opts ...Option) (*Handlers, error) {
	parsed, problems := spec.Load(files, file)
	s, problems := build(parsed, problems, files, file, opts)
	if s == nil {
		return nil, problems.Err()
	}
	return &Handlers{s}, nil
}

// Close ends kept programs.
func (h *Handlers) Close() { h.set.close() }

// Spec returns the content of the file.
func (h *Handlers) Spec() *spec.Operator { return h.set.spec }

// Try calls one handler and returns its output as JSON. Nothing is sent to a cluster.
func (h *Handlers) Try(ctx context.Context, t Trial) (call.Output, error) {
	found, err := h.find(t.Handler)
	if err != nil {
		return call.Output{}, &call.Error{Permanent: true, Err: err}
	}
	log := slog.New(slog.DiscardHandler)
	if t.Log != nil {
		log = slog.New(slog.NewTextHandler(t.Log, nil))
	}
	in := t.input(found)
	switch {
	case found.cel != nil:
		return decideDry(ctx, found, in)
	case len(found.children) > 0:
		return renderDry(ctx, found, t)
	}
	meta, _ := t.Object["metadata"].(map[string]any)
	namespace, _ := meta["namespace"].(string)
	name, _ := meta["name"].(string)
	out, err := found.caller.Call(ctx, &call.Request{Input: in, Namespace: namespace, Name: name, Log: log, NoWait: true})
	if err != nil {
		return out, err
	}
	c := &caller{set: h.set, handler: found}
	if err := c.checkOutput(out, found.spec.Validate || found.spec.Mutate); err != nil {
		return out, &call.Error{Permanent: true, Err: err}
	}
	return out, nil
}

func (h *Handlers) find(id string) (*handler, error) {
	var known []string
	for _, r := range h.set.resources {
		for _, one := range r.handlers {
			if one.spec.ID == id {
				return one, nil
			}
			known = append(known, one.spec.ID)
		}
	}
	return nil, fmt.Errorf("there is no handler %q%s", id, suggest.DidYouMean(id, known, "%q"))
}

// input returns the document for the handler, as the operator would build it.
func (t Trial) input(h *handler) call.Input {
	in := call.Input{V: call.Version, Handler: h.spec.ID, Reason: t.Reason, Object: t.Object, Memo: t.Memo, Retry: t.Retry}
	switch h.spec.Family() {
	case spec.Change:
		if in.Reason == "" {
			in.Reason = "create"
			if t.Old != nil {
				in.Reason = "update"
			}
		}
		if t.Old != nil {
			in.Old = t.Old
		}
		changes := diff.Of(configuration(t.Old), configuration(t.Object))
		if h.spec.Field != "" {
			in.Field = splitPath(h.spec.Field)
			changes = changes.At(in.Field...)
		}
		in.Diff = call.Changes(changes)
	case spec.Validate, spec.Mutate:
		operation := "CREATE"
		if t.Old != nil {
			operation = "UPDATE"
			in.Diff = call.Changes(diff.Of(t.Old, t.Object))
		}
		in.Old, in.Review = t.Old, &call.Review{Operation: operation, User: t.User}
		if in.Reason == "" {
			in.Reason = map[string]string{"CREATE": "create", "UPDATE": "update"}[operation]
		}
	case spec.Event:
		in.Reason, in.Event = "event", "MODIFIED"
	case spec.Timer:
		in.Reason = "timer"
	case spec.Daemon:
		in.Reason = "daemon"
	case spec.Reconciling:
		in.Reason, in.Children = "reconcile", childrenByKind(t.Children)
	}
	return in
}

// configuration returns the part of an object whose changes are handled. nil means none.
func configuration(o map[string]any) any {
	if o == nil {
		return nil
	}
	kept := maps.Clone(o)
	delete(kept, "status")
	if meta, ok := kept["metadata"].(map[string]any); ok {
		fields := map[string]any{}
		for _, key := range []string{"labels", "annotations"} {
			if v, ok := meta[key]; ok {
				fields[key] = v
			}
		}
		kept["metadata"] = fields
	}
	for _, key := range []string{"apiVersion", "kind"} {
		delete(kept, key)
	}
	return kept
}

func childrenByKind(list []map[string]any) map[string]map[string]any {
	all := map[string]map[string]any{}
	for _, o := range list {
		key := fmt.Sprintf("%v.%v", o["kind"], o["apiVersion"])
		if all[key] == nil {
			all[key] = map[string]any{}
		}
		meta, _ := o["metadata"].(map[string]any)
		all[key][fmt.Sprint(meta["name"])] = o
	}
	return all
}

// decideDry evaluates a validating expression.
func decideDry(ctx context.Context, h *handler, in call.Input) (call.Output, error) {
	vars := inputVars(&in)
	ok, err := h.cel.Bool(ctx, vars)
	if err != nil || ok {
		return call.Output{}, err
	}
	text := "the object violates " + h.spec.ID + ": " + h.spec.CEL
	if h.message != nil {
		v, err := h.message.Render(ctx, vars)
		if err != nil {
			return call.Output{}, err
		}
		text = fmt.Sprint(v)
	}
	return call.Output{Deny: &text}, nil
}

// renderDry renders the templates of children. Live children are those with the same kind
// and name.
func renderDry(ctx context.Context, h *handler, t Trial) (call.Output, error) {
	known := map[string]any{}
	vars := map[string]any{"object": t.Object, "children": known}
	live := childrenByKind(t.Children)
	out := call.Output{Children: []map[string]any{}}
	for _, c := range h.children {
		known[c.spec.ID] = map[string]any{}
		o, err := c.render(ctx, vars)
		if err != nil {
			return out, err
		}
		if o == nil {
			continue
		}
		out.Children = append(out.Children, o)
		meta, _ := o["metadata"].(map[string]any)
		if found, ok := live[fmt.Sprintf("%v.%v", o["kind"], o["apiVersion"])][fmt.Sprint(meta["name"])]; ok {
			known[c.spec.ID] = found
		}
	}
	if h.status != nil {
		status, err := h.status.Object(ctx, vars)
		if err != nil {
			return out, fmt.Errorf("status: %w", err)
		}
		out.Status = status
	}
	return out, nil
}

// OutputMap returns an output as a map with its non-empty keys.
func OutputMap(out call.Output) map[string]any {
	m, _ := jsonValue(out).(map[string]any)
	for _, key := range slices.Collect(maps.Keys(m)) {
		if m[key] == nil {
			delete(m, key)
		}
	}
	return m
}

func jsonValue(v any) any {
	text, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	var out any
	_ = json.Unmarshal(text, &out) // it was just encoded
	return out
}
