package apiclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/client"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/tracing"
)

// Cluster is the state that all clients of one operator share.
type Cluster struct {
	Objects *Objects
	Types   Types
	Manager string     // the field manager
	Level   slog.Level // the lowest level of posted events
	Post    func(about object.Identity, t, reason, message string)
	REST    func() *rest.Config
	Log     *slog.Logger
}

// RESTConfig returns a configuration for other clients of the cluster.
func (c *Cluster) RESTConfig() *rest.Config { return c.REST() }

// Client is a [client.Client] for the handlers of one object.
type Client struct {
	*Cluster
	namespace string // the namespace of the object; "" means none
	wrote     func() // called before each write. May be nil.
	hold      func(ctx context.Context, of string, bytes int, wait, always bool) (ok bool)
}

// writes records that the handler writes to the cluster by itself.
func (c *Client) writes() {
	if c.wrote != nil {
		c.wrote()
	}
}

// RESTConfig implements [client.Client]. It counts as a write, because the writes of
// other clients are not seen here.
func (c *Client) RESTConfig() *rest.Config {
	c.writes()
	return c.REST()
}

// MayWrite returns an error if writes are refused now, because another replica is the leader. It
// sends no request.
func (c *Client) MayWrite() error {
	if gate, ok := c.Objects.API.(interface{ MayWrite() error }); ok {
		return gate.MayWrite()
	}
	return nil
}

// For returns a client for the handlers of an object in the namespace; "" means none.
// wrote is called before each write. hold counts memory like the Hold of package handler. Both functions may be nil.
func (c *Cluster) For(namespace string, wrote func(), hold func(ctx context.Context, of string, bytes int, wait, always bool) (ok bool)) Client {
	return Client{c, namespace, wrote, hold}
}

// offline returns a client that uses cached discovery results and sends no requests, so
// it never blocks.
func (c *Client) offline() *Client {
	known := *c.Cluster
	known.Objects = c.Objects.Offline()
	return &Client{&known, c.namespace, c.wrote, nil}
}

// ClusterScoped reports whether the object is known to be cluster-scoped. It sends no
// request: objects of unknown resources are not.
func (c *Client) ClusterScoped(obj client.Object) bool {
	info, err := c.offline().Resource(context.Background(), obj, &client.Options{})
	return err == nil && !info.Namespaced
}

// Endpoint returns the endpoint of an object, which must have a name. It sends no request: the
// kind must be known.
func (c *Client) Endpoint(obj client.Object) (kube.Target, error) {
	return c.offline().named(context.Background(), obj, &client.Options{})
}

// target returns the endpoint of an object. Its name may be empty.
func (c *Client) target(ctx context.Context, obj client.Object, o *client.Options) (kube.Target, error) {
	if isNilObject(obj) {
		return kube.Target{}, fmt.Errorf("the object is a nil %T; pass a pointer to an object", obj)
	}
	info, err := c.Resource(ctx, obj, o)
	if err != nil {
		return kube.Target{}, err
	}
	t := kube.Target{Info: info, Name: obj.GetName()}
	if info.Namespaced {
		t.Namespace = cmp.Or(o.Namespace, obj.GetNamespace(), c.namespace)
		if t.Namespace == "" {
			return t, fmt.Errorf("%s are namespaced; set the namespace of the object, or use client.InNamespace", info)
		}
	} else if ns := cmp.Or(o.Namespace, obj.GetNamespace()); ns != "" {
		return t, fmt.Errorf("%s are cluster-scoped; remove the namespace %q from the object", info, ns)
	}
	return t, nil
}

// named returns the endpoint of an object, which must have a name.
func (c *Client) named(ctx context.Context, obj client.Object, o *client.Options) (kube.Target, error) {
	t, err := c.target(ctx, obj, o)
	if err == nil && t.Name == "" {
		err = fmt.Errorf("the object of %s has no name; set it", t.Info)
	}
	return t, err
}

// Get implements [client.Client].
func (c *Client) Get(ctx context.Context, obj client.Object, opts ...client.CallOption) error {
	o := effect(opts, func(opt client.CallOption, o *client.Options) { opt(o) })
	t, err := c.named(ctx, obj, &o)
	if err != nil {
		return fmt.Errorf("get: %w", err)
	}
	body, err := c.read(ctx, obj, t)
	if err != nil {
		return err
	}
	return fill(obj, body, t.Info)
}

// List implements [client.Client].
func (c *Client) List(ctx context.Context, obj client.Object, opts ...client.ListOption) iter.Seq2[client.Object, error] {
	o := effect(opts, client.ListOption.ApplyToList)
	return func(yield func(client.Object, error) bool) {
		if obj == nil {
			yield(nil, errors.New("list: the object is nil; pass an empty object of the type to list"))
			return
		}
		if isNilObject(obj) {
			obj = another(obj) // only the type matters
		}
		info, err := c.Resource(ctx, obj, &o)
		if err != nil {
			yield(nil, fmt.Errorf("list: %w", err))
			return
		}
		namespace := ""
		if info.Namespaced && !o.AllNamespaces {
			namespace = cmp.Or(o.Namespace, c.namespace)
		}
		for body, err := range c.Objects.List(ctx, info, namespace, kube.ListOptions{Selector: o.LabelSelector, Fields: o.FieldSelector}, c.holding(obj, namespace, &o)) {
			one := client.Object(nil)
			if err == nil {
				one = another(obj)
				err = fill(one, body, info)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(one, nil) {
				return
			}
		}
	}
}

// Create implements [client.Client].
func (c *Client) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	c.writes()
	o := effect(opts, client.CreateOption.ApplyToCreate)
	t, err := c.target(ctx, obj, &o)
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	fields, err := c.owned(ctx, obj, t, &o)
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	if o.Owner != nil { // an apply gets no annotation of the trace: it may change nothing else
		tracing.Stamp(ctx, fields)
	}
	t.Name = "" // the request goes to the collection
	body, err := c.Objects.Create(ctx, t, fields, kube.FieldManager(c.Manager))
	return c.finish(ctx, obj, t, body, err)
}

// Apply implements [client.Client].
func (c *Client) Apply(ctx context.Context, obj client.Object, opts ...client.ApplyOption) error {
	c.writes()
	o := effect(opts, client.ApplyOption.ApplyToApply)
	t, err := c.named(ctx, obj, &o)
	if err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	fields, err := c.owned(ctx, obj, t, &o)
	if err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	switch {
	case o.Subresource == status && t.Info.HasStatus():
		t.Subresource = status
		fields = onlyStatus(fields)
	case t.Info.HasStatus():
		delete(fields, "status")
	}
	params := []kube.Param{kube.FieldManager(cmp.Or(o.FieldManager, c.Manager))}
	if o.Force {
		params = append(params, kube.Force())
	}
	body, err := c.Objects.Apply(ctx, t, fields, params...)
	return c.finish(ctx, obj, t, body, err)
}

// Merge implements [client.Client].
func (c *Client) Merge(ctx context.Context, obj client.Object, patch any, opts ...client.MergeOption) error {
	c.writes()
	o := effect(opts, client.MergeOption.ApplyToMerge)
	t, err := c.named(ctx, obj, &o)
	if err != nil {
		return fmt.Errorf("merge: %w", err)
	}
	fields, err := mergePatch(patch)
	if err != nil {
		return fmt.Errorf("merge: %w", err)
	}
	if o.Subresource != status || t.Info.HasStatus() {
		t.Subresource = o.Subresource
	}
	body, err := c.Objects.Merge(ctx, t, fields, kube.FieldManager(c.Manager))
	if t.Subresource == scale {
		return outcome(err)
	}
	return c.finish(ctx, obj, t, body, err)
}

// Delete implements [client.Client].
func (c *Client) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	c.writes()
	o := effect(opts, client.DeleteOption.ApplyToDelete)
	t, err := c.named(ctx, obj, &o)
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	request := kube.DeleteOptions{UID: string(obj.GetUID()), Propagation: o.Propagation}
	if o.IfUnchanged {
		if request.ResourceVersion = obj.GetResourceVersion(); request.ResourceVersion == "" {
			return errors.New("delete: IfUnchanged requires a resourceVersion; read the object first")
		}
	}
	return outcome(c.Objects.Delete(ctx, t, request))
}

// Event implements [client.Client].
func (c *Client) Event(about []client.Object, t client.EventType, reason, format string, args ...any) {
	if !Posted(t, c.Level) {
		return
	}
	message := fmt.Sprintf(format, args...)
	for _, obj := range about {
		target, err := c.offline().named(context.Background(), obj, &client.Options{})
		if err != nil {
			c.Log.Warn("Failed to post a Kubernetes event: its object cannot be identified.", "reason", reason, "message", message, "error", err)
			continue
		}
		c.Post(object.Identity{
			APIVersion: target.Info.APIVersion(), Kind: target.Info.Kind,
			Namespace: target.Namespace, Name: target.Name, UID: string(obj.GetUID()),
		}, string(t), reason, message)
	}
}

// Posted reports whether events of the type are posted, if level is the lowest level of
// posted events. Types without a level are always posted.
func Posted(t client.EventType, level slog.Level) bool {
	switch t {
	case client.Normal:
		return level <= slog.LevelInfo
	case client.Warning:
		return level <= slog.LevelWarn
	case client.Failure:
		return level <= slog.LevelError
	}
	return true
}

// effect returns the effect of all options.
func effect[O any](opts []O, set func(O, *client.Options)) (all client.Options) {
	for _, o := range opts {
		set(o, &all)
	}
	return all
}

// finish copies the response of a write into obj, or returns its error. Other clients may have
// made the object large.
func (c *Client) finish(ctx context.Context, obj client.Object, t kube.Target, body *object.Body, err error) error {
	if err != nil {
		return outcome(err)
	}
	if t.Name, t.Subresource = body.Name, ""; t.Name != "" && c.hold != nil { // some kinds, such as reviews of access, are never stored
		// The object was written, so an error would repeat that. Without memory, it is not counted.
		c.hold(ctx, nameOf(t), memoryOf(obj, body), true, true)
	}
	return fill(obj, body, t.Info)
}

// outcome converts errors to types of package client that users can test for.
func outcome(err error) error {
	if kube.Lost(err) {
		return &client.UnknownOutcomeError{Err: err}
	}
	return err
}

// The subresources that the options choose.
const (
	status = "status"
	scale  = "scale"
)
