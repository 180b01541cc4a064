package gopftest

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/internal/apply"
	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/essence"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/recorder"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/logs"
	"gopf.dev/gopf/storage"
)

// Call is one call of a handler in a test. The calls of all handler types embed it.
// Its methods return the effects of the handler: the written object, the result, the
// Kubernetes events and the log lines.
type Call[T gopf.Object] struct {
	t       testing.TB
	cluster *Cluster
	client  *kube.Client
	req     *handler.Request
	lines   *output
	log     *slog.Logger

	subject *gopf.Subject[T] // the argument; nil means that there is none yet

	mu     sync.Mutex
	posted []Posted
}

// Posted is a Kubernetes event posted by a handler. Type is "Normal" or "Warning".
type Posted struct{ Type, Reason, Message string }

// CallOption sets the circumstances of a call.
type CallOption func(*callOptions)

type callOptions struct {
	id      string
	reason  gopf.Reason
	old     gopf.Object
	field   string
	retry   int
	started time.Time

	// For admission reviews only.
	operation admissionv1.Operation
	user      authenticationv1.UserInfo
	dry       bool
	part      string
}

// HandlerID sets the id that the handler is declared with. The result of the handler
// is stored under it. Default: "handler".
func HandlerID(id string) CallOption { return func(o *callOptions) { o.id = id } }

// Because sets the reason of the call. Default: [gopf.Update] with the option [Was],
// [gopf.Delete] if the object is being deleted, otherwise [gopf.Create]. With
// [gopf.Delete], the object is marked as deleted in the cluster.
func Because(reason gopf.Reason) CallOption { return func(o *callOptions) { o.reason = reason } }

// Was sets the object's last-handled state. The framework's own code computes the
// difference between it and the present state.
func Was(old gopf.Object) CallOption { return func(o *callOptions) { o.old = old } }

// AboutField sets the field path that the handler is declared for.
func AboutField(path string) CallOption { return func(o *callOptions) { o.field = path } }

// Tried sets how many times the handler was called before for the same change, and how
// long ago the first call was. A handler sees these as its retry count and runtime.
func Tried(times int, ago time.Duration) CallOption {
	return func(o *callOptions) { o.retry, o.started = times, time.Now().Add(-ago) }
}

// newCall returns a call about obj. It creates obj in the cluster unless it exists
// there, and connects the handler's client to the cluster.
func newCall[T gopf.Object](t testing.TB, c *Cluster, obj T, opts []CallOption) (*Call[T], callOptions) {
	t.Helper()
	call, o := bareCall[T](t, c, opts)
	info, body := call.place(obj, o.reason == gopf.Delete)
	call.prepare(info, body, o)
	return call, o
}

// bareCall returns a call that has no object yet.
func bareCall[T gopf.Object](t testing.TB, c *Cluster, opts []CallOption) (*Call[T], callOptions) {
	t.Helper()
	o := callOptions{id: "handler", started: time.Now(), user: authenticationv1.UserInfo{Username: "user"}}
	for _, opt := range opts {
		opt(&o)
	}
	lines := &output{}
	out, level := outputOf(t, testing.Verbose())
	log := slog.New(teeHandler{
		logs.New(lines, logs.Options{Format: logs.Plain, Level: slog.LevelDebug}),
		logs.New(out, logs.Options{Format: logs.Full, Level: level}),
	})
	api := kube.DefaultOptions()
	api.UserAgent, api.Log = "gopf", log
	client, err := kube.NewClient(c.RESTConfig(), api)
	if err != nil {
		t.Fatalf("connect to the cluster: %v", err)
	}
	t.Cleanup(client.Close)
	return &Call[T]{t: t, cluster: c, client: client, lines: lines, log: log}, o
}

// prepare builds the request that the handler's argument is made of.
func (c *Call[T]) prepare(info kind.Info, body *object.Body, o callOptions) {
	c.req = &handler.Request{
		Body: body, Resource: info, Log: c.log, Memos: c.cluster.memosOf(body.UID),
		Post: c.post, PostFrom: slog.LevelDebug, API: c.api(info, c.log),
		Handler: &handler.Handler{ID: o.id},
		Retry:   o.retry, Started: o.started, Key: func() string { return body.UID + "/" + o.id },
		Patch: &patch.Patch{},
	}
}

// find returns obj in untyped form and the resource that serves its kind.
func (c *Call[T]) find(obj T) (*unstructured.Unstructured, kind.Info) {
	c.t.Helper()
	u, err := untyped(c.cluster.withKind(obj))
	if err != nil {
		c.t.Fatal(err)
	}
	gvk := u.GroupVersionKind()
	found, err := c.client.Discover(c.t.Context(), gvk.Group)
	if err != nil {
		c.t.Fatalf("discover the resources of the cluster: %v", err)
	}
	i := slices.IndexFunc(found.Resources, func(info kind.Info) bool {
		return info.Group == gvk.Group && info.Version == gvk.Version && strings.EqualFold(info.Kind, gvk.Kind)
	})
	if i < 0 {
		c.t.Fatalf("the cluster does not serve the kind %s; add its resource to the arguments of NewCluster", gvk)
	}
	info := found.Resources[i]
	if info.Namespaced && u.GetNamespace() == "" {
		u.SetNamespace("default")
	}
	return u, info
}

// place creates the object in the cluster unless it exists there, and returns it as
// the operator would receive it.
func (c *Call[T]) place(obj T, deleting bool) (kind.Info, *object.Body) {
	c.t.Helper()
	u, info := c.find(obj)
	name := resourceName(info)
	if _, exists := c.cluster.Lookup(c.t, name, u.GetNamespace(), u.GetName()); !exists {
		created := c.cluster.Create(c.t, u)
		u.SetName(created.GetName())
		info.Kind = created.GetKind() // the first object sets the spelling of a guessed kind
		if status, ok := u.Object["status"].(map[string]any); ok && info.HasStatus() && len(status) > 0 {
			c.cluster.PatchStatus(c.t, name, u.GetNamespace(), u.GetName(), map[string]any{"status": status})
		}
	}
	if deleting {
		c.cluster.Patch(c.t, name, u.GetNamespace(), u.GetName(),
			map[string]any{"metadata": map[string]any{"finalizers": []string{gopf.DefaultSettings().Persistence.Finalizer}}})
		c.cluster.Delete(c.t, name, u.GetNamespace(), u.GetName())
	}
	body, err := c.client.Get(c.t.Context(), kube.Target{Info: info, Namespace: u.GetNamespace(), Name: u.GetName()})
	if err != nil {
		c.t.Fatalf("get the object: %v", err)
	}
	return info, body
}

// causeOf detects the change by the framework's own code.
func (c *Call[T]) causeOf(o callOptions) *cause.Cause {
	c.t.Helper()
	settings := gopf.DefaultSettings()
	var fields []jsonvalue.Path
	if o.field != "" {
		path, err := jsonvalue.ParsePath(o.field)
		if err != nil {
			c.t.Fatal(err)
		}
		fields = append(fields, path)
		c.req.Handler.Change = &handler.Change{Path: path}
	}
	now := essence.Of(c.req.Body, fields)
	essence.Clean(placed{c.req.Body}, now, settings.Persistence.Base, settings.Persistence.Progress)
	found := &cause.Cause{New: now, Deleting: c.req.Body.Deleting}
	if o.old != nil {
		before, err := untyped(o.old)
		if err != nil {
			c.t.Fatal(err)
		}
		found.Old = essence.Build(before.Object, fields)
		found.Diff = diff.Of(found.Old, now)
	} else {
		found.Diff = diff.Of(nil, now)
	}
	switch {
	case o.reason != 0:
		found.Reason = cause.Reason(o.reason.String())
	case found.Deleting:
		found.Reason = cause.Delete
	case o.old != nil:
		found.Reason = cause.Update
	default:
		found.Reason = cause.Create
	}
	found.Initial = found.Reason == cause.Resume
	if o.old == nil && found.Reason != cause.Create {
		found.Old, found.Diff = now, nil // nothing has changed
	}
	return found
}

// Apply writes the handler's changes and its result to the cluster, as the operator
// does when the handler returns. It returns the object as stored after the write, and
// fails the test if the write fails.
func (c *Call[T]) Apply() T {
	c.t.Helper()
	c.reportLostEdits()
	result, err := execute.ToJSON(c.req.Result)
	if err != nil {
		c.t.Fatal(err)
	}
	asked := *c.req.Patch
	*c.req.Patch = patch.Patch{}
	if result != nil {
		execute.Deliver(&asked, c.req.Handler.ID, result)
		c.req.Result = nil
	}
	after, err := c.write(c.t.Context(), c.req.Body, &asked)
	if err != nil {
		c.t.Fatalf("write the changes of the handler: %v", err)
	}
	c.req.Body = after
	u := &unstructured.Unstructured{}
	if err := after.Decode(&u.Object); err != nil {
		c.t.Fatal(err)
	}
	return decodeAs[T](c.t, u)
}

// reportLostEdits logs modifications of the object that the handler's patch does not
// have.
func (c *Call[T]) reportLostEdits() {
	if c.subject != nil {
		gopf.TestArguments[T]{}.ReportLostEdits(c.subject)
		c.subject = nil // once is enough
	}
}

func (c *Call[T]) write(ctx context.Context, body *object.Body, asked *patch.Patch) (*object.Body, error) {
	applier := apply.Applier{API: c.client, Resource: c.req.Resource, Log: c.req.Log}
	return applier.Apply(ctx, body, asked, &patch.Patch{}, apply.Finalizer{})
}

// now returns the present state of the object in the cluster.
func (c *Call[T]) now() *object.Body {
	c.t.Helper()
	b := c.req.Body
	body, err := c.client.Get(c.t.Context(), kube.Target{Info: c.req.Resource, Namespace: b.Namespace, Name: b.Name})
	if err != nil {
		c.t.Fatalf("get the object: %v", err)
	}
	return body
}

// deleted returns the object with a deletion timestamp.
func (c *Call[T]) deleted(b *object.Body) *object.Body {
	c.t.Helper()
	fields := jsonvalue.Clone(b.Map()).(map[string]any)
	fields["metadata"].(map[string]any)["deletionTimestamp"] = time.Now().UTC().Format(time.RFC3339)
	marked, err := object.FromMap(fields)
	if err != nil {
		c.t.Fatal(err)
	}
	return marked
}

// Result returns the value that the handler passed to SetResult, or nil.
func (c *Call[T]) Result() any { return c.req.Result }

// Posted returns the Kubernetes events posted by the handler, in order. They are also
// stored in the cluster.
func (c *Call[T]) Posted() []Posted {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.posted)
}

// Logged returns the log lines of the call: each message followed by its attributes.
func (c *Call[T]) Logged() []string {
	text := strings.TrimSuffix(c.lines.String(), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// post records a Kubernetes event and creates it in the cluster. It does not wait for
// a background queue, so tests see the event immediately.
func (c *Call[T]) post(kindOf, reason, message string) {
	c.mu.Lock()
	c.posted = append(c.posted, Posted{kindOf, reason, message})
	c.mu.Unlock()
	about := c.req.Body.Identity
	about.APIVersion, about.Kind = c.req.Resource.APIVersion(), c.req.Resource.Kind
	c.postEvent(recorder.Event{About: about, Type: kindOf, Reason: reason, Message: message})
}

func (c *Call[T]) postEvent(e recorder.Event) {
	settings := gopf.DefaultSettings().Posting
	body := recorder.Config{
		Component: settings.ReportingComponent, Instance: settings.ReportingInstance, NamePrefix: settings.EventNamePrefix,
	}.Body(e, time.Now())
	target := kube.Target{
		Info:      kind.Info{Version: "v1", Plural: "events", Kind: "Event", Namespaced: true},
		Namespace: body["metadata"].(map[string]any)["namespace"].(string),
	}
	if _, err := c.client.Create(context.Background(), target, encode(body)); err != nil {
		c.t.Errorf("post a Kubernetes event: %v", err)
	}
}

// protect turns a panic of fn into an error, as the operator does.
func protect(fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return fn()
}

// api returns the handler's client for the cluster.
func (c *Call[T]) api(info kind.Info, log *slog.Logger) handler.API {
	c.t.Helper()
	of, err := kind.Parse(resourceName(info))
	if err != nil {
		c.t.Fatal(err)
	}
	all := &apiclient.Objects{API: c.client, Known: func() []kind.Info { return nil }}
	return gopf.TestArguments[T]{}.API(all, of, c.postEvent, c.client.RESTConfig, log)
}

// resourceName returns the name of the resource in the form used by [NewCluster].
func resourceName(info kind.Info) string {
	if info.Group == "" {
		return info.Version + "/" + info.Plural
	}
	return info.Group + "/" + info.Version + "/" + info.Plural
}

// placed adapts an object to the interface of storages.
type placed struct{ body *object.Body }

// Identity implements storage.Object.
func (p placed) Identity() storage.Identity {
	return storage.Identity{
		APIVersion: p.body.APIVersion, Kind: p.body.Kind,
		Namespace: p.body.Namespace, Name: p.body.Name, UID: p.body.UID,
	}
}

// Lookup implements storage.Object.
func (p placed) Lookup(path ...string) (any, bool) { return p.body.Lookup(path...) }
