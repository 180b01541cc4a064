package gopf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/engine"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/objects"
	"gopf.dev/gopf/internal/posting"
	"gopf.dev/gopf/internal/registry"
	"gopf.dev/gopf/kind"
)

// cluster is the state that all clients of one operator share.
type cluster struct {
	objects *objects.Client
	types   kinds
	manager string // the field manager
	post    func(posting.Event)
	rest    func() *rest.Config
	log     *slog.Logger
}

func (op *Operator) newCluster(h engine.Handle, log *slog.Logger) *cluster {
	manager := op.Settings.Posting.ReportingComponent
	if manager == "" || manager == DefaultSettings().Posting.ReportingComponent { // the default does not identify this operator
		manager = cmp.Or(programName(), "gopf")
	}
	return &cluster{objects: h.Objects(), types: op.types, manager: manager, post: h.Post, rest: h.RESTConfig, log: log}
}

// RESTConfig implements registry.API.
func (c *cluster) RESTConfig() *rest.Config { return c.rest() }

// client is a [Client] for the handlers of one object.
type client struct {
	*cluster
	namespace string // the namespace of the object; "" means none
	wrote     func() // called before each write. May be nil.
}

// writes records that the handler writes to the cluster by itself.
func (c *client) writes() {
	if c.wrote != nil {
		c.wrote()
	}
}

// RESTConfig implements [Client]. It counts as a write, because the writes of other
// clients are not seen here.
func (c *client) RESTConfig() *rest.Config {
	c.writes()
	return c.rest()
}

// apiFor returns the client for a handler call. It uses place for it, which saves an
// allocation.
func apiFor(req *registry.Request, place *client) Client {
	switch api := req.API.(type) {
	case *cluster:
		*place = client{api, req.Body.Namespace, req.Wrote}
		return place
	case Client: // from a test
		return api
	}
	return nil
}

// offline returns a client that uses cached discovery results and sends no requests, so
// it never blocks.
func (c *client) offline() *client {
	known := *c.cluster
	known.objects = c.objects.Offline()
	return &client{&known, c.namespace, c.wrote}
}

// target returns the endpoint of an object. Its name may be empty.
func (c *client) target(ctx context.Context, obj Object, s *callSpec) (kube.Target, error) {
	if isNilObject(obj) {
		return kube.Target{}, fmt.Errorf("the object is a nil %T; pass a pointer to an object", obj)
	}
	info, err := c.resource(ctx, obj, s)
	if err != nil {
		return kube.Target{}, err
	}
	t := kube.Target{Info: info, Name: obj.GetName()}
	if info.Namespaced {
		t.Namespace = cmp.Or(s.namespace, obj.GetNamespace(), c.namespace)
		if t.Namespace == "" {
			return t, fmt.Errorf("%s are namespaced; set the namespace of the object, or use gopf.InNamespace", info)
		}
	} else if ns := cmp.Or(s.namespace, obj.GetNamespace()); ns != "" {
		return t, fmt.Errorf("%s are cluster-scoped; remove the namespace %q from the object", info, ns)
	}
	return t, nil
}

// named returns the endpoint of an object, which must have a name.
func (c *client) named(ctx context.Context, obj Object, s *callSpec) (kube.Target, error) {
	t, err := c.target(ctx, obj, s)
	if err == nil && t.Name == "" {
		err = fmt.Errorf("the object of %s has no name; set it", t.Info)
	}
	return t, err
}

func (c *client) Get(ctx context.Context, obj Object, opts ...ObjectOption) error {
	s := spec(opts, func(o ObjectOption, s *callSpec) { o(s) })
	t, err := c.named(ctx, obj, &s)
	if err != nil {
		return fmt.Errorf("get: %w", err)
	}
	body, err := c.objects.Get(ctx, t)
	if err != nil {
		return err
	}
	return fill(obj, body, t.Info)
}

func (c *client) List(ctx context.Context, obj Object, opts ...ListOption) iter.Seq2[Object, error] {
	s := spec(opts, ListOption.list)
	return func(yield func(Object, error) bool) {
		if obj == nil {
			yield(nil, errors.New("list: the object is nil; pass an empty object of the type to list"))
			return
		}
		if isNilObject(obj) {
			obj = another(obj) // only the type matters
		}
		info, err := c.resource(ctx, obj, &s)
		if err != nil {
			yield(nil, fmt.Errorf("list: %w", err))
			return
		}
		namespace := ""
		if info.Namespaced && !s.everywhere {
			namespace = cmp.Or(s.namespace, c.namespace)
		}
		for body, err := range c.objects.List(ctx, info, namespace, kube.ListOptions{Selector: s.labels, Fields: s.fields}) {
			one := Object(nil)
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

func (c *client) Create(ctx context.Context, obj Object, opts ...ObjectOption) error {
	c.writes()
	s := spec(opts, func(o ObjectOption, s *callSpec) { o(s) })
	t, err := c.target(ctx, obj, &s)
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	fields, err := manifest(obj, t)
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	t.Name = "" // the request goes to the collection
	body, err := c.objects.Create(ctx, t, fields, kube.FieldManager(c.manager))
	return finish(obj, body, t.Info, err)
}

func (c *client) Apply(ctx context.Context, obj Object, opts ...ApplyOption) error {
	c.writes()
	s := spec(opts, ApplyOption.apply)
	t, err := c.named(ctx, obj, &s)
	if err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	fields, err := manifest(obj, t)
	if err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	switch {
	case s.subresource == statusEndpoint && t.Info.HasStatus():
		t.Subresource = statusEndpoint
		fields = onlyStatus(fields)
	case t.Info.HasStatus():
		delete(fields, "status")
	}
	params := []kube.Param{kube.FieldManager(cmp.Or(s.manager, c.manager))}
	if s.force {
		params = append(params, kube.Force())
	}
	body, err := c.objects.Apply(ctx, t, fields, params...)
	return finish(obj, body, t.Info, err)
}

func (c *client) Merge(ctx context.Context, obj Object, patch any, opts ...MergeOption) error {
	c.writes()
	s := spec(opts, MergeOption.merge)
	t, err := c.named(ctx, obj, &s)
	if err != nil {
		return fmt.Errorf("merge: %w", err)
	}
	fields, err := mergePatch(patch)
	if err != nil {
		return fmt.Errorf("merge: %w", err)
	}
	if s.subresource != statusEndpoint || t.Info.HasStatus() {
		t.Subresource = s.subresource
	}
	body, err := c.objects.Merge(ctx, t, fields, kube.FieldManager(c.manager))
	if t.Subresource == scaleEndpoint {
		return outcome(err)
	}
	return finish(obj, body, t.Info, err)
}

func (c *client) Delete(ctx context.Context, obj Object, opts ...DeleteOption) error {
	c.writes()
	s := spec(opts, DeleteOption.delete)
	t, err := c.named(ctx, obj, &s)
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	o := kube.DeleteOptions{UID: string(obj.GetUID()), Propagation: s.propagation}
	if s.unchanged {
		if o.ResourceVersion = obj.GetResourceVersion(); o.ResourceVersion == "" {
			return errors.New("delete: IfUnchanged requires a resourceVersion; read the object first")
		}
	}
	return outcome(c.objects.Delete(ctx, t, o))
}

func (c *client) Post(about Object, kind, reason, message string) {
	t, err := c.offline().named(context.Background(), about, &callSpec{})
	if err != nil {
		c.log.Warn("Failed to post a Kubernetes event: its object cannot be identified.", "reason", reason, "message", message, "error", err)
		return
	}
	c.post(posting.Event{
		About: object.Identity{
			APIVersion: t.Info.APIVersion(), Kind: t.Info.Kind,
			Namespace: t.Namespace, Name: t.Name, UID: string(about.GetUID()),
		},
		Type: kind, Reason: reason, Message: message,
	})
}

// spec returns the effect of all options.
func spec[O any](opts []O, set func(O, *callSpec)) (s callSpec) {
	for _, o := range opts {
		set(o, &s)
	}
	return s
}

// finish copies the response of a write into obj, or returns its error.
func finish(obj Object, body *object.Body, info kind.Info, err error) error {
	if err != nil {
		return outcome(err)
	}
	return fill(obj, body, info)
}

// outcome converts errors to types of this package that users can test for.
func outcome(err error) error {
	if errors.As(err, new(*kube.UnknownOutcomeError)) {
		return &UnknownOutcomeError{err}
	}
	return err
}
