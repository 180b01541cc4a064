package insight

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/childwatch"
	"gopf.dev/gopf/internal/discovery"
	"gopf.dev/gopf/internal/explain"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/index"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/process"
	"gopf.dev/gopf/internal/reconcile"
	"gopf.dev/gopf/kind"
)

// Planning is a request for a plan.
type Planning struct {
	Objects
	Everything bool           // all objects of all resources
	Manifests  []*object.Body // plan as if these were applied
	Restarted  bool           // the operator has just started: resume handlers take part
}

// maxPlans limits the objects that are planned at the same time.
const maxPlans = 8

// Plan returns the next actions of the operator with objects. It calls reconcile handlers, and
// sends dry runs. No other handler is called, and nothing is stored in the cluster.
func (op *Operator) Plan(ctx context.Context, r Planning, use func(*Plan) error) error {
	return op.connected(ctx, func(ctx context.Context, s *session) error {
		s.client = s.client.Derive(func(o *kube.Options) { o.DryRun = true })
		p := &planner{session: s, plan: &Plan{Version: explain.Version}, processors: map[string]*process.Processor{}}
		if err := p.prepare(ctx); err != nil {
			return err
		}
		if err := p.run(ctx, r); err != nil {
			return err
		}
		p.plan.sort()
		return use(p.plan)
	})
}

// planner makes a plan.
type planner struct {
	*session
	restarted  bool
	runner     *reconcile.Runner
	api        handler.API
	processors map[string]*process.Processor // by resource

	mu   sync.Mutex
	plan *Plan
}

// prepare reads the children of reconcile handlers, and fills the indices.
func (p *planner) prepare(ctx context.Context) error {
	known := func() []kind.Info { return p.cluster }
	whole := p.client.Derive(func(o *kube.Options) { o.ManagedFields = true })
	marks := uint64(0)
	store := childwatch.NewStore(p.Name, func() uint64 { marks++; return marks })
	p.runner = &reconcile.Runner{Objects: &apiclient.Objects{API: whole, Known: known}, Store: store, Name: p.Name}
	if p.Cluster != nil {
		p.api = p.Cluster(&apiclient.Objects{API: p.client, Known: known}, p.client)
	}
	for _, served := range p.served {
		k := p.processor(served)
		if k.Cluster = p.api; k.Reconcile != nil {
			k.Reconcile.Runner = p.runner
		}
		p.processors[served.Info.String()] = k
		if err := p.fill(ctx, served, k); err != nil {
			return err
		}
	}
	return p.readChildren(ctx, whole)
}

// fill fills the indices from all objects of a resource: reconcile handlers may read them.
func (p *planner) fill(ctx context.Context, served discovery.Served, k *process.Processor) error {
	functions := served.Handlers.Of(handler.Indexing)
	if len(functions) == 0 || len(p.Handlers.Of(handler.Reconciles)) == 0 {
		return nil
	}
	x := &index.Indexers{DefaultBackoff: p.Process.DefaultBackoff}
	for _, h := range functions {
		x.Functions = append(x.Functions, index.Function{Handler: h, Into: p.Indices[h]})
	}
	k.Indexers = x
	return p.list(ctx, discovery.Served{Info: served.Info}, served.Select, nil, func(body *object.Body) { k.FillIndices(ctx, body) })
}

// readChildren reads the known children of all owners.
func (p *planner) readChildren(ctx context.Context, whole *kube.Client) error {
	done := map[string]bool{}
	for _, h := range p.Handlers.Of(handler.Reconciles) {
		for _, owned := range h.Reconcile.Owned {
			for _, info := range owned.Of.Select(p.cluster) {
				if done[info.String()] {
					continue
				}
				done[info.String()] = true
				_, err := whole.List(ctx, info, "", kube.ListOptions{Selector: childwatch.Label + "=" + p.Name}, func(body *object.Body) error {
					child, err := p.runner.Store.Read(info, body)
					if err == nil {
						p.runner.Store.Add(child)
					}
					return err
				})
				if err != nil {
					return fmt.Errorf("list %s: %w", info, err)
				}
			}
		}
	}
	return nil
}

// run plans the selected objects.
func (p *planner) run(ctx context.Context, r Planning) error {
	p.restarted = r.Restarted
	for _, m := range r.Manifests {
		served, body, err := p.applied(ctx, m)
		if err != nil {
			return err
		}
		if k := p.processors[served.Info.String()]; k.Indexers != nil {
			k.FillIndices(ctx, body)
		}
		p.one(ctx, served, body)
	}
	for _, n := range r.Names {
		_, served, body, err := p.get(ctx, n)
		if err != nil {
			return err
		}
		p.one(ctx, served, body)
	}
	resources := p.served
	if !r.Everything {
		if resources = nil; r.Kind != "" {
			served, err := p.find(r.Kind)
			if err != nil {
				return err
			}
			resources = append(resources, served)
		}
	}
	for _, served := range resources {
		slots := make(chan struct{}, maxPlans)
		var running sync.WaitGroup
		selector := selectorOf(served)
		err := p.list(ctx, served, r.Selector, nil, func(body *object.Body) {
			if !handler.Selects(selector, body) {
				return
			}
			slots <- struct{}{}
			running.Go(func() { defer func() { <-slots }(); p.one(ctx, served, body) })
		})
		running.Wait()
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// one plans one object, and adds it to the plan.
func (p *planner) one(ctx context.Context, served discovery.Served, body *object.Body) {
	k := p.processors[served.Info.String()]
	report, err := p.explain(ctx, k, served, body, p.restarted)
	var planned *PlannedObject
	if err != nil {
		planned = &PlannedObject{Object: explain.Object{Kind: served.Info.Kind, Namespace: body.Namespace, Name: body.Name}, Problems: []string{err.Error()}}
	} else {
		planned = plannedOf(report, k.PlanReconcile(ctx, body))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.plan.Seen++; planned.todo() {
		p.plan.Objects = append(p.plan.Objects, *planned)
	}
}

// plannedOf returns the plan of one object.
func plannedOf(r *explain.Report, reconciled []process.Planned) *PlannedObject {
	o := &PlannedObject{Object: r.Object, Next: r.Next, Reason: r.Reason, Summary: r.Summary}
	for _, h := range r.Handlers {
		if h.Family == "change" && (h.Phase == string(process.Due) || h.Phase == string(process.Delayed)) {
			o.Calls = append(o.Calls, PlannedCall{Handler: h.ID, Where: h.Where, Due: h.Due, Attempts: h.Attempts})
		}
	}
	secret := isSecret(r.Object.APIVersion, r.Object.Kind)
	for _, plan := range reconciled {
		if plan.Err != nil {
			o.Problems = append(o.Problems, "reconcile handler "+plan.Handler.ID+": "+plan.Err.Error())
		}
		if len(plan.Patch) > 0 && !secret {
			o.Patches = append(o.Patches, PlannedPatch{Handler: plan.Handler.ID, Fields: plan.Patch})
		}
		for _, step := range plan.Steps {
			if step.Verb != children.Keep {
				o.Children = append(o.Children, childOf(plan.Handler.ID, step))
			}
		}
	}
	return o
}

// childOf returns the planned action for a child. Values of Secrets are never shown.
func childOf(id string, step reconcile.Step) PlannedChild {
	c := PlannedChild{
		Handler: id, Action: step.Verb.String(), Reason: step.Reason,
		Child: explain.Child{APIVersion: step.APIVersion, Kind: step.Kind, Namespace: step.Namespace, Name: step.Name},
	}
	if step.Recreate {
		c.Action = "recreate"
	}
	if step.Refused != nil {
		c.Refused = step.Refused.Error()
	}
	c.Diff, c.More = explain.ChangesOf(step.Diff)
	if isSecret(step.APIVersion, step.Kind) {
		for i := range c.Diff {
			c.Diff[i].Old, c.Diff[i].New = nil, nil
		}
	}
	slices.SortStableFunc(c.Diff, func(a, b explain.Change) int { return compare(a.Path, b.Path) })
	return c
}

func isSecret(apiVersion, kind string) bool { return apiVersion == "v1" && kind == "Secret" }
