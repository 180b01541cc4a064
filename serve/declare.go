package serve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/panics"
	"gopf.dev/gopf/serve/call"
	"gopf.dev/gopf/serve/expr"
	"gopf.dev/gopf/serve/spec"
	"gopf.dev/gopf/webhook"
)

type object = gopf.Unstructured

// declare declares all handlers.
func (s *set) declare(op *gopf.Operator) {
	if w := s.spec.Webhook; w != nil {
		listen := w.Listen
		if listen == 0 {
			listen = 9443
		}
		op.Settings.Admission.Server = webhook.Service{
			Name: w.Service, Namespace: w.Namespace, Port: w.Port, Secret: w.Secret, Listen: webhook.Local{Port: listen},
		}
		if op.Settings.Admission.Managed == "" {
			op.Settings.Admission.Managed = s.spec.Identity()
		}
	}
	for _, r := range s.resources {
		base := s.filter(op.Resource(r.spec.Resource), r.spec.Where, r.when)
		for _, h := range r.handlers {
			if family := h.spec.Family(); family == spec.Validate || family == spec.Mutate {
				c := &caller{set: s, op: op, handler: h}
				c.review(s.filter(s.filter(op.Resource(r.spec.Resource), r.spec.Where, nil), h.spec.Where, nil), r.when, h.when)
				continue
			}
			s.declareHandler(op, s.filter(base, h.spec.Where, h.when), h)
		}
	}
	for _, a := range s.activities["startup"] {
		op.OnStartup(a.spec.ID, s.activityFunc(op, a, "startup"), retryOptions(a.spec.Retries, a.spec.Backoff, a.spec.Timeout, a.spec.OnError)...)
	}
	for _, a := range s.activities["cleanup"] {
		op.OnCleanup(a.spec.ID, s.activityFunc(op, a, "cleanup"), retryOptions(a.spec.Retries, a.spec.Backoff, a.spec.Timeout, a.spec.OnError)...)
	}
	for _, a := range s.activities["probe"] {
		op.OnProbe(a.spec.ID, func(ctx context.Context, act *gopf.Activity) (any, error) {
			var result any
			err := s.callActivity(ctx, op, act, a, "probe", &result)
			return result, err
		}, retryOptions(a.spec.Retries, a.spec.Backoff, a.spec.Timeout, a.spec.OnError)...)
	}
	op.OnCleanup("serve-programs", func(context.Context, *gopf.Activity) error {
		s.close()
		return nil
	})
}

// filter restricts a handle. when may be nil.
func (s *set) filter(r *gopf.Resource[object], w spec.Where, when *expr.Expr) *gopf.Resource[object] {
	for key, v := range w.Labels {
		r = r.WithLabel(key, matcher(v))
	}
	for key, v := range w.Annotations {
		r = r.WithAnnotation(key, matcher(v))
	}
	for path, v := range w.Fields {
		r = r.WithField(path, matcher(v))
	}
	if when == nil {
		return r
	}
	usesOld := strings.Contains(w.CEL, "old")
	return r.When(func(c *gopf.Candidate[object]) bool {
		in := call.Input{Object: c.Raw(), Event: c.Event, Reason: reasonText(c.Reason)}
		if usesOld {
			in.Old = c.Old().Object
		}
		ok, err := s.holds(c.Context(), when, &in, c.Object.GetNamespace())
		if err != nil {
			panic(panics.PlainError{Err: err}) // the framework tries the object again later
		}
		return ok
	})
}

// holds evaluates the condition of where.cel for an object in the namespace.
func (s *set) holds(ctx context.Context, when *expr.Expr, in *call.Input, namespace string) (ok bool, err error) {
	err = s.share.evaluate(ctx, in.Review, namespace, func() (err error) {
		ok, err = when.Bool(ctx, inputVars(in))
		return err
	})
	if err != nil {
		err = fmt.Errorf("where.cel: %w", err)
	}
	return ok, err
}

func reasonText(r gopf.Reason) string {
	if r == 0 {
		return ""
	}
	return r.String()
}

// matcher returns the condition for a value; see [spec.Where].
func matcher(v any) gopf.Matcher {
	switch x := v.(type) {
	case nil:
		return gopf.Absent
	case []any:
		var alternatives []gopf.Matcher
		for _, one := range x {
			alternatives = append(alternatives, matcher(one))
		}
		return gopf.AnyOf(alternatives...)
	case map[string]any:
		if exists, ok := x["exists"].(bool); ok {
			if exists {
				return gopf.Present
			}
			return gopf.Absent
		}
		return gopf.Not(matcher(x["not"]))
	}
	return gopf.Is(v)
}

func retryOptions(retries *int, backoff *time.Duration, timeout time.Duration, onError string) (opts []gopf.RetryOption) {
	if retries != nil {
		opts = append(opts, gopf.MaxAttempts(*retries))
	}
	if backoff != nil {
		opts = append(opts, gopf.Backoff(*backoff))
	}
	if timeout > 0 {
		opts = append(opts, gopf.Timeout(timeout))
	}
	switch onError {
	case "permanent":
		opts = append(opts, gopf.ErrorsPermanent())
	case "ignored":
		opts = append(opts, gopf.ErrorsIgnored())
	}
	return opts
}

// reasonsOf are the reasons of a change handler.
func reasonsOf(on []string) (r gopf.Reason) {
	for word, reason := range map[string]gopf.Reason{"create": gopf.Create, "update": gopf.Update, "delete": gopf.Delete, "resume": gopf.Resume} {
		if slices.Contains(on, word) {
			r |= reason
		}
	}
	return r
}

func (s *set) declareHandler(op *gopf.Operator, r *gopf.Resource[object], h *handler) {
	limits := retryOptions(h.spec.Retries, h.spec.Backoff, h.spec.Timeout, h.spec.OnError)
	c := &caller{set: s, op: op, handler: h}
	switch h.spec.Family() {
	case spec.Change:
		c.change(r, limits)
	case spec.Event:
		r.OnEvent(h.spec.ID, func(ctx context.Context, e *gopf.WatchEvent[object]) error {
			return c.call(ctx, e.Subject, &call.Input{Reason: "event", Event: e.Type})
		})
	case spec.Timer:
		opts := []gopf.TimerOption{gopf.InitialDelay(h.spec.InitialDelay)}
		for _, o := range limits {
			opts = append(opts, o)
		}
		if h.spec.Idle > 0 {
			opts = append(opts, gopf.Idle(h.spec.Idle))
		}
		if h.spec.Sharp {
			opts = append(opts, gopf.Sharp())
		}
		if h.spec.Optional {
			opts = append(opts, gopf.Optional())
		}
		at(r, h.spec.Field).Timer(h.spec.ID, h.spec.Timer, func(ctx context.Context, t *gopf.Tick[object]) error {
			return c.call(ctx, t.Subject, &call.Input{Reason: "timer"})
		}, opts...)
	case spec.Daemon:
		opts := []gopf.DaemonOption{gopf.InitialDelay(h.spec.InitialDelay), gopf.StopTimeout(30 * time.Second)}
		for _, o := range limits {
			opts = append(opts, o)
		}
		if h.spec.Optional {
			opts = append(opts, gopf.Optional())
		}
		at(r, h.spec.Field).Daemon(h.spec.ID, func(ctx context.Context, d *gopf.Daemon[object]) error {
			if err := c.call(ctx, d.Subject, &call.Input{Reason: "daemon"}); err != nil && ctx.Err() == nil {
				return err
			}
			return nil // after the end of the context, an error is not a failure
		}, opts...)
	case spec.Reconciling:
		c.reconcile(r, limits)
	}
}

// at restricts a handle to a field, if there is one.
func at(r *gopf.Resource[object], field string) *gopf.Resource[object] {
	if field == "" {
		return r
	}
	return &r.Field(field).Resource
}

func (c *caller) change(r *gopf.Resource[object], limits []gopf.RetryOption) {
	h := c.handler.spec
	var opts []gopf.ChangeOption
	for _, o := range limits {
		opts = append(opts, o)
	}
	if h.Optional {
		opts = append(opts, gopf.Optional())
	}
	fn := func(ctx context.Context, ch *gopf.Change[object]) error {
		in := &call.Input{Reason: ch.Reason.String(), Key: ch.Key(), Old: ch.OldRaw(), Diff: call.Changes(ch.Diff)}
		if h.Field != "" {
			in.Field = splitPath(h.Field)
		}
		return c.call(ctx, ch.Subject, in)
	}
	if len(h.On) == 0 {
		r.OnField(h.ID, h.Field, fn, opts...)
		return
	}
	at(r, h.Field).On(reasonsOf(h.On), h.ID, fn, opts...)
}

// review declares a handler of reviews, for the objects for which all conditions hold. A condition
// may be nil. The handler evaluates them: a failure is then an error of the review, with the
// text of the expression. A failure of a filter would look like a panic.
func (c *caller) review(r *gopf.Resource[object], conditions ...*expr.Expr) {
	h := c.handler.spec
	var opts []gopf.ReviewOption
	if len(h.Operations) > 0 {
		var operations []admissionv1.Operation
		for _, o := range h.Operations {
			operations = append(operations, admissionv1.Operation(o))
		}
		opts = append(opts, gopf.Operations(operations...))
	}
	if h.IgnoreFailures {
		opts = append(opts, gopf.IgnoreFailures())
	}
	fn := func(ctx context.Context, v *gopf.Review[object]) error {
		in := &call.Input{
			Reason: strings.ToLower(string(v.Operation)), Old: v.Old.Object, Diff: call.Changes(v.Diff),
			Review: &call.Review{
				Operation: string(v.Operation), Subresource: v.Subresource, User: userVars(v.User), DryRun: v.DryRun, Client: v.ClientAddress,
			},
		}
		for _, when := range conditions {
			if when == nil {
				continue
			}
			candidate := &call.Input{Object: v.Raw(), Old: v.Old.Object, Review: in.Review}
			if ok, err := c.set.holds(ctx, when, candidate, v.Object.GetNamespace()); err != nil || !ok {
				return err
			}
		}
		if c.handler.cel != nil {
			return c.decide(ctx, v, in)
		}
		return c.callWith(ctx, v.Subject, in, v.AddWarning)
	}
	if h.Mutate {
		r.Mutate(h.ID, fn, opts...)
	} else {
		r.Validate(h.ID, fn, opts...)
	}
}

// decide evaluates the expression of a validating handler.
func (c *caller) decide(ctx context.Context, v *gopf.Review[object], in *call.Input) error {
	in.Object = v.Raw()
	return c.set.share.evaluate(ctx, in.Review, v.Object.GetNamespace(), func() error {
		vars := inputVars(in)
		ok, err := c.handler.cel.Bool(ctx, vars)
		if err != nil || ok {
			return err
		}
		if c.handler.message == nil {
			return gopf.Deny("the object violates %s: %s", c.handler.spec.ID, c.handler.spec.CEL)
		}
		text, err := c.handler.message.Render(ctx, vars)
		if err != nil {
			return gopf.Deny("the object violates %s", c.handler.spec.ID)
		}
		return gopf.Deny("%v", text)
	})
}

func (s *set) activityFunc(op *gopf.Operator, a *activity, name string) func(context.Context, *gopf.Activity) error {
	return func(ctx context.Context, act *gopf.Activity) error { return s.callActivity(ctx, op, act, a, name, nil) }
}

// callActivity calls a handler of the operator itself. Its output may have a result and an
// outcome.
func (s *set) callActivity(ctx context.Context, op *gopf.Operator, act *gopf.Activity, a *activity, name string, result *any) error {
	r := &call.Request{Log: act.Log, Input: call.Input{V: call.Version, Handler: a.spec.ID, Reason: name, Retry: act.Retry, Started: &act.Started}}
	if act.API != nil {
		r.Kubeconfig, r.Token = kubeconfigOf(act.API), tokenOf(act.API, a.spec.HTTP)
	}
	backoff := backoffOf(op, a.spec.Backoff)
	out, err := a.caller.Call(ctx, r)
	if err != nil {
		return failure(err, backoff)
	}
	if out.Patch != nil || out.Status != nil || out.Labels != nil || out.Annotations != nil || out.Children != nil || out.Apply != nil || out.Delete != nil || out.Events != nil {
		return gopf.Permanent(errors.New("the output of a handler without an object can only have result, wait, retry and permanent"))
	}
	if result != nil {
		*result = out.Result
	}
	return outcome(out, backoff)
}

// userVars returns a user as expressions and programs see it: with the names of its JSON.
func userVars(u authenticationv1.UserInfo) map[string]any {
	vars := map[string]any{}
	for key, text := range map[string]string{"username": u.Username, "uid": u.UID} {
		if text != "" {
			vars[key] = text
		}
	}
	if len(u.Groups) > 0 {
		vars["groups"] = anyList(u.Groups)
	}
	if len(u.Extra) > 0 {
		extra := make(map[string]any, len(u.Extra))
		for key, values := range u.Extra {
			extra[key] = anyList(values)
		}
		vars["extra"] = extra
	}
	return vars
}

func anyList(texts []string) []any {
	list := make([]any, len(texts))
	for i, text := range texts {
		list[i] = text
	}
	return list
}
