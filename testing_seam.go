package gopf

import (
	"context"
	"log/slog"
	"reflect"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/engine"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/insight"
	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/recorder"
	"gopf.dev/gopf/kind"
)

// TestArguments creates the arguments of handlers exactly as the running operator does.
// It is for package gopftest: its methods take internal types, which other modules
// cannot use.
type TestArguments[T Object] struct{}

// Subject returns the argument of filters and index functions.
func (TestArguments[T]) Subject(req *handler.Request) (*Subject[T], error) {
	return newSubject[T](req)
}

// Change returns the argument of change handlers.
func (TestArguments[T]) Change(req *handler.Request) (*Change[T], error) {
	c, err := newChange[T](req)
	if err == nil {
		c.hooks = reportingLostEdits()
	}
	return c, err
}

// Handler returns a function that calls a change handler and its sub-handlers.
func (TestArguments[T]) Handler(fn ChangeFunc[T]) func(context.Context, *handler.Request) error {
	return erase(fn, reportingLostEdits())
}

// ReportLostEdits logs the edits of a handler that has returned; see
// [ExecutionSettings.ReportLostEdits].
func (TestArguments[T]) ReportLostEdits(s *Subject[T]) { reportingLostEdits().check(s) }

// Event returns the argument of event handlers.
func (TestArguments[T]) Event(req *handler.Request) (*WatchEvent[T], error) {
	s, err := newSubject[T](req)
	if err != nil {
		return nil, err
	}
	return &WatchEvent[T]{Subject: s, Type: req.Event, Missed: req.Missed}, nil
}

// Reconciliation returns the argument of reconcile handlers.
func (TestArguments[T]) Reconciliation(req *handler.Request) (*Reconciliation[T], error) {
	s, err := newSubject[T](req)
	if err != nil {
		return nil, err
	}
	return &Reconciliation[T]{s}, nil
}

// ReconcileHandler returns a function that calls a reconcile handler.
func (TestArguments[T]) ReconcileHandler(fn func(context.Context, *Reconciliation[T]) error) func(context.Context, *handler.Request) error {
	return eraseReconcile(fn, nil, reportingLostEdits())
}

// Daemon returns the argument of daemons.
func (TestArguments[T]) Daemon(call *daemon.Call) (*Daemon[T], error) {
	return newDaemon[T](call)
}

// Tick returns the argument of timer functions.
func (TestArguments[T]) Tick(call *daemon.Call) (*Tick[T], error) {
	s, err := newSubject[T](call.Request)
	if err != nil {
		return nil, err
	}
	return &Tick[T]{s, call}, nil
}

// Review returns the argument of admission handlers.
func (TestArguments[T]) Review(req *handler.Request) (*Review[T], error) { return newReview[T](req) }

// ReviewHandler returns a function that calls an admission handler.
func (TestArguments[T]) ReviewHandler(fn func(context.Context, *Review[T]) error) func(context.Context, *handler.Request) error {
	return reviewer(fn, reportingLostEdits())
}

// API returns a client for handlers. T is declared for the resource.
func (TestArguments[T]) API(all *apiclient.Objects, of kind.Selector, post func(recorder.Event), config func() *rest.Config, log *slog.Logger) handler.API {
	types := apiclient.Types{}
	types.Add(reflect.TypeFor[T](), of)
	return &apiclient.Cluster{Objects: all, Types: types, Manager: "gopftest", Post: posts(post), REST: config, Log: log}
}

// TestSeam connects the packages gopftest and cli with the operator. Its methods have
// internal types, which other modules cannot use.
type TestSeam struct{}

// Webhooks makes the operator respond to reviews in the process of a test.
func (TestSeam) Webhooks(by engine.Substitute) RunOption {
	return func(o *runOptions) { o.webhooks = by }
}

// Jitter sets the random numbers for the jitter of the framework's own retries. nil
// means exact delays.
func (TestSeam) Jitter(random jitter.Source) RunOption {
	return func(o *runOptions) { o.jitter = random }
}

// Index returns the *index.Index of an [IndexOf].
func (TestSeam) Index(of interface{ internal() any }) any { return of.internal() }

func (i *IndexOf[K, V]) internal() any { return i.kept }

// Types returns the declared resources of Go types.
func (TestSeam) Types(op *Operator) map[reflect.Type][]kind.Selector { return op.types }

// Mark passes the context of every call of a handler through mark, which gets the id of the
// handler and the file and line of its declaration.
func (TestSeam) Mark(op *Operator, mark func(ctx context.Context, id, where string) context.Context) {
	for _, h := range op.handlers {
		if call := h.Call; call != nil {
			h.Call = func(ctx context.Context, req *handler.Request) error { return call(mark(ctx, h.ID, h.Where), req) }
		}
	}
	for _, spec := range op.daemons {
		call := spec.Call
		spec.Call = func(ctx context.Context, c *daemon.Call) error { return call(mark(ctx, spec.ID, spec.Where), c) }
	}
}

// Insight returns the commands about single objects of the operator.
func (TestSeam) Insight(op *Operator, opts ...RunOption) (*insight.Operator, error) {
	if err := op.checkStorages(); err != nil {
		return nil, err
	}
	config, err := op.commandConfig(opts)
	if err != nil {
		return nil, err
	}
	o := engine.Insight(config)
	o.Cluster = func(objects *apiclient.Objects, client *kube.Client) handler.API {
		return op.clusterOf(objects, func(recorder.Event) {}, client.RESTConfig, config.Log)
	}
	return o, nil
}

// Handlers returns the declared handlers.
func (TestSeam) Handlers(op *Operator) handler.Set { return op.handlers }
