package serve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/serve/call"
	"gopf.dev/gopf/serve/expr"
	"gopf.dev/gopf/serve/spec"
)

// child is a compiled child.
type child struct {
	spec    *spec.Child
	object  *expr.Template
	ready   *expr.Expr // nil means the built-in rules
	include *expr.Expr // nil means always
}

// templates compiles the children of a handler. A template may use object, and the
// children that are declared before it.
func (s *set) templates(h *handler) {
	env, err := expr.NewEnv([]string{"object", "children"})
	if err != nil {
		s.problem(h.spec.Pos, "%v", err)
		return
	}
	self, err := expr.NewEnv([]string{"object", "children", "self"})
	if err != nil {
		s.problem(h.spec.Pos, "%v", err)
		return
	}
	for i := range h.spec.Children {
		c := &child{spec: &h.spec.Children[i]}
		if value, ok := s.value(c.spec.Pos, c.spec.ID, c.spec.Template); ok {
			if c.object, err = env.Template(value); err != nil {
				s.problem(c.spec.Template.Pos, "template of %q: %v", c.spec.ID, err)
			}
			s.identified(h.spec, c.spec, value)
		}
		if c.spec.ReadyWhen != "" {
			if c.ready, err = self.Condition(c.spec.ReadyWhen); err != nil {
				s.problem(c.spec.Pos, "readyWhen of %q: %v", c.spec.ID, err)
			}
		}
		if c.spec.IncludeWhen != "" {
			if c.include, err = env.Condition(c.spec.IncludeWhen); err != nil {
				s.problem(c.spec.Pos, "includeWhen of %q: %v", c.spec.ID, err)
			} else {
				s.constant(c.spec.KeyPos(c.spec.Pos, "includeWhen"), fmt.Sprintf("includeWhen of %q", c.spec.ID), c.include)
			}
		}
		h.children = append(h.children, c)
	}
	if len(h.spec.Status) > 0 {
		if h.status, err = env.Template(h.spec.Status); err != nil {
			s.problem(h.spec.Pos, "status of handler %q: %v", h.spec.ID, err)
		}
	}
}

func (c *caller) reconcile(r *gopf.Resource[object], limits []gopf.RetryOption) {
	h := c.handler.spec
	var opts []gopf.ReconcileOption
	for _, name := range h.Reconcile.Owns {
		opts = append(opts, gopf.Owns[object](gopf.OfResource(name)))
	}
	for _, o := range limits {
		opts = append(opts, o)
	}
	if h.Reconcile.Every > 0 {
		opts = append(opts, gopf.Every(h.Reconcile.Every))
	}
	if h.Reconcile.NoConditions {
		opts = append(opts, gopf.NoConditions())
	}
	fn := c.fromHook
	if len(c.handler.children) > 0 {
		fn = c.fromTemplates
	}
	r.Reconcile(h.ID, fn, opts...)
}

// fromTemplates declares the children of templates. [gopf.Want] may wait for memory, with a
// rendered child. So the number of these calls is limited.
func (c *caller) fromTemplates(ctx context.Context, r *gopf.Reconciliation[object]) error {
	return within(ctx, c.set.share.templates, nil, r.Object.GetNamespace(), func() error { return c.declareChildren(ctx, r) })
}

func (c *caller) declareChildren(ctx context.Context, r *gopf.Reconciliation[object]) error {
	known := map[string]any{}
	vars := map[string]any{"object": r.Raw(), "children": known}
	wanted := map[string]*gopf.Child[object]{}
	missing := false
	for _, child := range c.handler.children {
		var fields map[string]any
		err := c.evaluate(ctx, r.Object, func() (err error) {
			fields, err = child.render(ctx, vars)
			return err
		})
		if err != nil {
			return err
		}
		if fields == nil {
			continue
		}
		w := gopf.Want(r, &unstructured.Unstructured{Object: fields}, c.wantOptions(ctx, r, child, vars, wanted)...)
		wanted[child.spec.ID] = w
		missing = missing || !w.Exists
		known[child.spec.ID] = w.Live().Object
		if w.Live().Object == nil {
			known[child.spec.ID] = map[string]any{}
		}
	}
	for _, child := range c.handler.children { // expressions of the status may name all of them
		if _, ok := known[child.spec.ID]; !ok {
			known[child.spec.ID] = map[string]any{}
		}
	}
	if c.handler.status == nil {
		return nil
	}
	var status map[string]any
	err := c.evaluate(ctx, r.Object, func() (err error) {
		status, err = c.handler.status.Object(ctx, vars)
		return err
	})
	if err != nil {
		return fmt.Errorf("status: %w", err)
	}
	r.Patch.MergeStatus(status)
	// The framework calls no handler after its own writes. If an expression of the status uses
	// a new child, the handler must be called once more after its creation.
	again := gopf.Memo[absence](r.Subject)
	if again.delay = again.next(missing); missing {
		r.RequeueAfter(again.delay)
	}
	return nil
}

// evaluate calls fn, which evaluates expressions for an object in the cluster.
func (c *caller) evaluate(ctx context.Context, o object, fn func() error) error {
	return c.set.share.evaluate(ctx, nil, o.GetNamespace(), fn)
}

// render returns the fields of the child. nil means that it is not included.
func (c *child) render(ctx context.Context, vars map[string]any) (map[string]any, error) {
	if c.include != nil {
		include, err := c.include.Bool(ctx, vars)
		if err != nil {
			return nil, fmt.Errorf("includeWhen of %s: %w", c.spec.ID, err)
		}
		if !include {
			return nil, nil
		}
	}
	fields, err := c.object.Object(ctx, vars)
	if err != nil {
		return nil, fmt.Errorf("child %s: %w", c.spec.ID, err)
	}
	return fields, nil
}

// absence is the memo of an object with children that do not exist yet.
type absence struct{ delay time.Duration }

// next returns the delay until the next look at the children. It grows, because a child may
// wait for another one for a long time.
func (a *absence) next(missing bool) time.Duration {
	if !missing {
		return 0
	}
	return min(max(2*a.delay, 500*time.Millisecond), 5*time.Minute)
}

func (c *caller) wantOptions(ctx context.Context, r *gopf.Reconciliation[object], child *child, vars map[string]any, wanted map[string]*gopf.Child[object]) (opts []gopf.WantOption) {
	for _, on := range child.spec.DependsOn {
		if other, ok := wanted[on]; ok { // a child that is not included is no obstacle
			opts = append(opts, gopf.DependsOn(other))
		}
	}
	if child.ready != nil {
		opts = append(opts, gopf.ReadyWhen(func(live object) bool {
			self := map[string]any{"object": vars["object"], "children": vars["children"], "self": live.Object}
			var ok bool
			err := c.evaluate(ctx, r.Object, func() (err error) {
				ok, err = child.ready.Bool(ctx, self)
				return err
			})
			if err != nil {
				r.Log.Warn("The expression of readyWhen failed; the child counts as not ready.", "child", child.spec.ID, "error", err)
			}
			return ok && err == nil
		}))
	}
	if child.spec.CreateOnly {
		opts = append(opts, gopf.CreateOnly())
	}
	if child.spec.Adopt {
		opts = append(opts, gopf.AdoptExisting())
	}
	if child.spec.Recreate {
		opts = append(opts, gopf.AllowRecreate())
	}
	if child.spec.Orphan {
		opts = append(opts, gopf.Orphan())
	}
	return opts
}

// fromHook declares the children that a program or a hook returns.
func (c *caller) fromHook(ctx context.Context, r *gopf.Reconciliation[object]) error {
	live, err := c.liveChildren(ctx, r)
	if err != nil {
		return err
	}
	out, err := c.send(ctx, r.Subject, &call.Input{Reason: "reconcile", Children: live})
	if err != nil {
		return err
	}
	if err := c.checkOutput(out, false); err != nil {
		return gopf.Permanent(err)
	}
	if out.Children == nil && out.Wait == nil && out.Retry == nil && out.Permanent == nil {
		// An empty output would delete all children. Nothing to declare is an empty list.
		return gopf.Permanent(errors.New("the output has no children; return an empty list to delete all"))
	}
	for i, one := range out.Children {
		if one == nil {
			return gopf.Permanent(fmt.Errorf("child %d of the output is null", i))
		}
		gopf.Want(r, &unstructured.Unstructured{Object: one})
	}
	if err := carryOut(ctx, r.Subject, out); err != nil {
		return err
	}
	return outcome(out, c.backoff())
}
