package gopftest

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/childwatch"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/readiness"
	"gopf.dev/gopf/internal/reconcile"
	"gopf.dev/gopf/kind"
)

// ReconcileCall is one call of a reconcile handler in a test; see [Reconciliation].
type ReconcileCall[T gopf.Object] struct {
	*gopf.Reconciliation[T]
	*Call[T]
	runner *reconcile.Runner
}

// Planned is an action that the operator would take after a call of a reconcile handler.
type Planned struct {
	Action string // "create", "change", "repair", "wait", "refuse", "delete", or "keep"
	Child  string // such as "Deployment web"
	Reason string // empty for "keep"
	// Diff has the changes that the API server would make to the child, by its response to a
	// dry run. For a new child, it has one item with the whole child.
	Diff diff.Diff
	// Refused is the error with which the API server would refuse the change. nil means none.
	Refused error
}

// Reconciliation returns the argument for one call of a reconcile handler. It creates obj
// in the cluster unless it exists there. The handler may declare children of all kinds,
// and sees those that exist in the cluster and have obj as their owner:
//
//	call := gopftest.Reconciliation(t, cluster, website)
//	if err := call.Run(children); err != nil { … }
//	deployment := call.Wanted()[0]
//
// Nothing is written to children: use [Start] to test the effects in the cluster.
func Reconciliation[T gopf.Object](t testing.TB, c *Cluster, obj T, opts ...CallOption) *ReconcileCall[T] {
	t.Helper()
	call, _ := newCall(t, c, obj, opts)
	client := call.client.Derive(func(o *kube.Options) { o.ManagedFields = true })
	api := call.req.API.(*apiclient.Cluster)
	found, err := client.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	api.Objects.Known = func() []kind.Info { return found.Resources }
	marks := uint64(0)
	runner := &reconcile.Runner{
		Objects: &apiclient.Objects{API: client, Known: api.Objects.Known}, Name: api.Manager,
		Store: childwatch.NewStore(api.Manager, func() uint64 { marks++; return marks }),
	}
	call.req.Handler.Reconcile = &handler.Reconcile{Owned: []handler.Owned{{
		Of: kind.Matching(func(kind.Info) bool { return true }), Anywhere: true,
	}}}
	call.req.Children = &handler.Children{Operator: api.Manager, Find: func(k children.Key) (handler.Content, readiness.Verdict) {
		child, err := runner.Live(context.Background(), k)
		if err != nil || child == nil || child.Owner != call.req.Body.UID {
			return nil, readiness.Verdict{}
		}
		return runner.Content(context.Background(), k.Namespace, child), child.Readiness
	}}
	arg, err := gopf.TestArguments[T]{}.Reconciliation(call.req)
	if err != nil {
		t.Fatal(err)
	}
	call.subject = arg.Subject
	return &ReconcileCall[T]{arg, call, runner}
}

// Run calls a handler as the operator does: it turns a panic into an error, and writes the
// handler's changes of the object. An invalid declaration of a child is an error as well.
func (c *ReconcileCall[T]) Run(fn func(context.Context, *gopf.Reconciliation[T]) error) error {
	c.t.Helper()
	err := protect(func() error { return gopf.TestArguments[T]{}.ReconcileHandler(fn)(c.t.Context(), c.req) })
	if err == nil {
		err = c.req.Children.Mistake()
	}
	if err != nil {
		c.req.Result = nil
	}
	c.Apply()
	return plain(err)
}

// Wanted returns the declared children, in the order of their declaration. They do not
// have the label and the owner reference yet, which the operator adds.
func (c *ReconcileCall[T]) Wanted() []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, w := range c.req.Children.Wanted {
		all = append(all, &unstructured.Unstructured{Object: w.Fields})
	}
	return all
}

// Plan returns the actions that the operator would take now, in the order of the
// declarations. It writes nothing: the API server computes changes in dry runs. A child that
// would not change is kept.
func (c *ReconcileCall[T]) Plan() []Planned {
	c.t.Helper()
	steps, err := c.runner.Plan(c.t.Context(), reconcile.Task{
		Owner:     reconcile.Owner{Info: c.req.Resource, Identity: c.req.Body.Identity},
		Inventory: &children.Inventory{Owner: c.req.Body.UID}, Wanted: c.req.Children.Wanted,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	var all []Planned
	for _, s := range steps {
		all = append(all, Planned{s.Verb.String(), s.Key.String(), s.Reason, s.Diff, s.Refused})
	}
	return all
}
