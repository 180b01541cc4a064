package engine

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"gopf.dev/gopf/internal/childwatch"
	"gopf.dev/gopf/internal/controller"
	"gopf.dev/gopf/internal/page"
	"gopf.dev/gopf/internal/readiness"
)

// shown is the running operator as its page shows it. It implements [page.Source].
type shown struct{ *operator }

// About returns facts about the process.
func (op shown) About() page.About {
	a := page.About{Name: cmp.Or(op.Name, op.Election.Name), Version: op.Version, Resources: []string{}, Problems: op.controllers.Problems(), Idle: op.idle()}
	for _, c := range op.controllers.Served() {
		a.Resources = append(a.Resources, c.Name())
	}
	slices.Sort(a.Resources)
	return a
}

// controllerOf returns the controller of the resource. nil means that it is not served.
func (op shown) controllerOf(resource string) *controller.Controller {
	for _, c := range op.controllers.Served() {
		if c.Name() == resource {
			return c
		}
	}
	return nil
}

// Objects returns known objects of the resource.
func (op shown) Objects(resource string, b controller.Browsing) ([]controller.Known, int, error) {
	c := op.controllerOf(resource)
	if c == nil {
		return nil, 0, page.ErrUnknown
	}
	found, total := c.Browse(b)
	return found, total, nil
}

// Object reads and explains one object.
func (op shown) Object(ctx context.Context, resource, namespace, name string) (*page.Object, error) {
	c := op.controllerOf(resource)
	if c == nil {
		return nil, page.ErrUnknown
	}
	report, err := Insight(op.Config).ExplainServed(ctx, op.client, op.controllers.Places, c.Served(), namespace, name)
	if err != nil {
		return nil, err
	}
	o := &page.Object{Report: report, Timeline: []page.Step{}, Children: op.childrenOf(report.Object.UID, report.Object.Namespace, maxDepth)}
	for _, e := range op.history.Of(report.Object.UID) {
		o.Timeline = append(o.Timeline, page.Step{
			At: e.At, Took: float64(e.Took) / float64(time.Second), Step: e.Step.String(), Handler: e.Handler, Outcome: e.Outcome, Text: e.Text,
		})
	}
	return o, nil
}

// maxDepth limits the tree of children. Owner references may be forged, and have cycles.
const maxDepth = 4

// childrenOf returns the known children of an object, sorted by kind and name.
func (op shown) childrenOf(uid, namespace string, depth int) []page.Child {
	all := []page.Child{}
	runner := op.children.Runner()
	if runner == nil || depth == 0 {
		return all
	}
	for _, child := range runner.Store.Of(uid) {
		if child.BelongsTo(uid, namespace) {
			all = append(all, op.child(child, depth))
		}
	}
	slices.SortFunc(all, func(a, b page.Child) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return all
}

func (op shown) child(of *childwatch.Child, depth int) page.Child {
	c := page.Child{Kind: of.Kind, Namespace: of.Namespace, Name: of.Name, State: "ready", Children: op.childrenOf(of.UID, of.Namespace, depth-1)}
	verdict := of.Readiness
	switch c.Message = verdict.Message; verdict.State {
	case readiness.InProgress:
		c.State = "in progress"
	case readiness.Failed:
		c.State = "failed"
	}
	for _, served := range op.controllers.Served() {
		if info := served.Info(); info.Kind == of.Kind && info.APIVersion() == of.APIVersion {
			c.Resource = served.Name()
		}
	}
	return c
}
