package gopf

import (
	"context"
	"log/slog"
	"reflect"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/engine"
	"gopf.dev/gopf/internal/index"
	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/objects"
	"gopf.dev/gopf/internal/posting"
	"gopf.dev/gopf/internal/registry"
	"gopf.dev/gopf/kind"
)

// TestArguments makes what handlers are given, exactly as the running operator
// does. It is for package gopftest, which has functions for tests: nobody outside
// of this module can name what its methods take.
type TestArguments[T Object] struct{}

// Subject is what filters and index functions are given.
func (TestArguments[T]) Subject(req *registry.Request) (*Subject[T], error) {
	return newSubject[T](req)
}

// Change is what handlers of changes are given.
func (TestArguments[T]) Change(req *registry.Request) (*Change[T], error) { return newChange[T](req) }

// Handler calls a handler of changes, sub-handlers included.
func (TestArguments[T]) Handler(fn ChangeFunc[T]) func(context.Context, *registry.Request) error {
	return erase(fn)
}

// Event is what handlers of events are given.
func (TestArguments[T]) Event(req *registry.Request) (*Event[T], error) {
	s, err := newSubject[T](req)
	if err != nil {
		return nil, err
	}
	return &Event[T]{Subject: s, Type: req.Event, Missed: req.Missed}, nil
}

// Daemon is what daemons are given.
func (TestArguments[T]) Daemon(call *daemon.Call) (*Daemon[T], error) {
	s, err := newSubject[T](call.Request)
	if err != nil {
		return nil, err
	}
	return &Daemon[T]{s, call}, nil
}

// Tick is what timers are given.
func (TestArguments[T]) Tick(call *daemon.Call) (*Tick[T], error) {
	s, err := newSubject[T](call.Request)
	if err != nil {
		return nil, err
	}
	return &Tick[T]{s, call}, nil
}

// Review is what handlers of reviews are given.
func (TestArguments[T]) Review(req *registry.Request) (*Review[T], error) { return newReview[T](req) }

// ReviewHandler calls a handler of reviews.
func (TestArguments[T]) ReviewHandler(fn ReviewFunc[T]) func(context.Context, *registry.Request) error {
	return reviewer(fn)
}

// API is how handlers reach a cluster; T stands for the resource.
func (TestArguments[T]) API(all *objects.Client, of kind.Selector, post func(posting.Event), config func() *rest.Config, log *slog.Logger) registry.API {
	types := kinds{}
	types.add(reflect.TypeFor[T](), of)
	return &cluster{objects: all, types: types, manager: "gopftest", post: post, rest: config, log: log}
}

// TestWebhooks makes an operator serve its reviews in the process of a test. Only
// package gopftest can make the argument.
func TestWebhooks(by engine.Substitute) RunOption {
	return func(o *runOptions) { o.webhooks = by }
}

// TestJitter sets the random numbers that spread the framework's own retries. nil
// makes their delays exact. Only package gopftest uses it.
func TestJitter(random jitter.Source) RunOption {
	return func(o *runOptions) { o.jitter = random }
}

// TestIndex gives package gopftest what is behind an index.
func TestIndex[K comparable, V any](of *IndexOf[K, V], use func(*index.Index[K, V])) { use(of.kept) }

// TestHandlers gives tests the handlers that an operator has declared, as the engine
// runs them. Like [TestArguments], it is of no use outside of this module.
func TestHandlers(op *Operator, use func(registry.Set)) { use(op.handlers) }
