package process

import (
	"context"
	"fmt"
	"slices"

	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/reconcile"
)

// Planned is the plan of one reconcile handler of an object.
type Planned struct {
	Handler *handler.Handler
	Steps   []reconcile.Step
	Patch   map[string]any // the fields of the object that the handler would change; empty means none
	Err     error          // of the call or of the plan; nil means none
}

// FillIndices updates the indices for a listed object. A panic of a filter leaves them as they
// are.
func (p *Processor) FillIndices(ctx context.Context, body *object.Body) {
	m := memoryOf(body.Identity, false)
	_ = protected(func() error { // the running operator logs it
		p.Indexers.Update(ctx, func() *handler.Request { return p.plainRequest(m, body) })
		return nil
	})
}

// PlanReconcile calls the reconcile handlers that match the object, and returns the
// actions for the children that they declare. It writes nothing: p.Cluster and the runner
// must have a client that only sends dry runs. Handlers of an object that is paused, being
// deleted or of another operator are not called.
func (p *Processor) PlanReconcile(ctx context.Context, body *object.Body) (all []Planned) {
	if p.Reconcile == nil || body.Deleting || p.pauseOf(body) != nil || p.HandedOver != nil && p.HandedOver(body) {
		return nil
	}
	m := memoryOf(body.Identity, false)
	for _, h := range p.Reconcile.Handlers {
		plan := Planned{Handler: h}
		matches := false
		if plan.Err = protected(func() error { matches = h.MatchesObject(p.plainRequest(m, body)); return nil }); plan.Err == nil && matches {
			plan.Err = protected(func() error { return p.planOne(ctx, m, body, &plan) })
		}
		if matches || plan.Err != nil {
			all = append(all, plan)
		}
	}
	return all
}

// planOne calls one handler, and plans the actions for its children.
func (p *Processor) planOne(ctx context.Context, m *Memory, body *object.Body, plan *Planned) error {
	r := &reconciling{Processor: p, memory: m, handler: plan.Handler, state: &reconciled{}, body: body}
	if err := r.load(ctx); err != nil {
		return err
	}
	request := p.daemonRequest(m, body)
	request.Handler, request.Retry, request.Started = plan.Handler, r.state.retries, r.state.started
	request.Children = &handler.Children{
		Find: r.finding(ctx), Refer: func([]handler.Reference) {}, Operator: p.Reconcile.Runner.Name, Listed: r.listed,
	}
	err := plan.Handler.Call(ctx, request)
	waits, _ := err.(*handler.TemporaryError)
	if err != nil && (waits == nil || !waits.Wait) {
		return err
	}
	if err := request.Children.Mistake(); err != nil {
		return err
	}
	plan.Patch = request.Patch.Fields()
	plan.Steps, err = p.Reconcile.Runner.Plan(ctx, reconcile.Task{
		Owner: r.owner(), Inventory: r.inventory, Others: r.others, Alone: len(p.Reconcile.Handlers) == 1, Wanted: request.Children.Wanted,
	})
	if waits != nil { // a handler that waits for something deletes no children
		plan.Steps = slices.DeleteFunc(plan.Steps, func(s reconcile.Step) bool { return s.Verb == children.Delete })
	}
	return err
}

// protected turns a panic of the user's code into an error: it may use things that only a
// running operator has.
func protected(call func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("it panicked: %v", v)
		}
	}()
	return call()
}
