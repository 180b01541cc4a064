package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/client"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/serve/call"
	"gopf.dev/gopf/serve/spec"
)

// caller connects a handler of the file with the framework.
type caller struct {
	set     *set
	op      *gopf.Operator
	handler *handler
}

// memos has the memos of an object by handler.
type memos struct {
	mu     sync.Mutex
	values map[string]json.RawMessage
}

// call calls the handler and applies its output.
func (c *caller) call(ctx context.Context, s *gopf.Subject[object], in *call.Input) error {
	return c.callWith(ctx, s, in, nil)
}

// callWith is call for reviews, which accept warnings. A nil warn means another handler.
func (c *caller) callWith(ctx context.Context, s *gopf.Subject[object], in *call.Input, warn func(string, ...any)) error {
	out, err := c.send(ctx, s, in)
	if err != nil {
		return err
	}
	if err := c.checkOutput(out, warn != nil); err != nil {
		return gopf.Permanent(err)
	}
	for _, w := range out.Warnings {
		warn("%s", w)
	}
	if err := carryOut(ctx, s, out); err != nil {
		return err
	}
	return outcome(out, c.backoff())
}

// send calls the handler and stores its memo.
func (c *caller) send(ctx context.Context, s *gopf.Subject[object], in *call.Input) (call.Output, error) {
	memo := gopf.Memo[memos](s)
	id := c.handler.spec.ID
	in.V, in.Handler, in.Retry, in.Object = call.Version, id, s.Retry, s.Raw()
	if !s.Started.IsZero() {
		in.Started = &s.Started
	}
	memo.mu.Lock()
	in.Memo = memo.values[id]
	memo.mu.Unlock()
	out, err := c.handler.caller.Call(ctx, &call.Request{
		Input: *in, Namespace: s.Object.GetNamespace(), Name: s.Object.GetName(), Log: s.Log,
		Kubeconfig: kubeconfigOf(s.API), Token: tokenOf(s.API, c.handler.spec.HTTP),
	})
	if err != nil {
		return out, failure(err, c.backoff())
	}
	if out.Memo != nil {
		memo.mu.Lock()
		if memo.values == nil {
			memo.values = map[string]json.RawMessage{}
		}
		memo.values[id] = out.Memo
		memo.mu.Unlock()
	}
	return out, nil
}

// checkOutput checks that the keys of the output apply to the handler.
func (c *caller) checkOutput(out call.Output, review bool) error {
	family := c.handler.spec.Family()
	changes := out.Patch != nil || out.Labels != nil || out.Annotations != nil || out.Status != nil
	switch {
	case out.Children != nil && family != spec.Reconciling:
		return errors.New("the output has children, which only reconcile handlers declare")
	case out.Warnings != nil && !review:
		return errors.New("the output has warnings, which only validate and mutate handlers return")
	case out.Deny != nil && !review:
		return errors.New("the output has deny, which only validate and mutate handlers return; use permanent")
	case review && (out.Wait != nil || out.Retry != nil):
		return errors.New("the output has wait or retry: an admission request cannot wait; use deny")
	case family == spec.Validate && changes:
		return errors.New("the output changes the object: use mutate instead of validate")
	case review && (out.Apply != nil || out.Delete != nil || out.Result != nil):
		return errors.New("the output of a review cannot have apply, delete or result: the object may not be stored")
	}
	return nil
}

// backoff is the delay after temporary errors that name no delay.
func (c *caller) backoff() time.Duration { return backoffOf(c.op, c.handler.spec.Backoff) }

func backoffOf(op *gopf.Operator, own *time.Duration) time.Duration {
	if own != nil {
		return *own
	}
	return op.Settings.Execution.DefaultBackoff
}

// carryOut records the changes of the object, and sends the other objects.
func carryOut(ctx context.Context, s *gopf.Subject[object], out call.Output) error {
	for key, v := range out.Patch {
		s.Patch.Set(jsonvalue.Path{key}.Pointer(), v)
	}
	if out.Status != nil {
		s.Patch.MergeStatus(out.Status)
	}
	for key, v := range out.Labels {
		if v == nil {
			s.Patch.Unlabel(key)
		} else {
			s.Patch.Label(key, *v)
		}
	}
	for key, v := range out.Annotations {
		if v == nil {
			s.Patch.Unannotate(key)
		} else {
			s.Patch.Annotate(key, *v)
		}
	}
	if out.Result != nil {
		s.SetResult(out.Result)
	}
	for _, e := range out.Events {
		if e.Type == "" {
			e.Type = string(gopf.Normal)
		}
		s.Event(client.EventType(e.Type), e.Reason, "%s", e.Message)
	}
	for _, o := range out.Apply {
		if err := s.API.Apply(ctx, &unstructured.Unstructured{Object: o}); err != nil {
			return fmt.Errorf("apply: %w", err)
		}
	}
	for _, o := range out.Delete {
		if err := s.API.Delete(ctx, &unstructured.Unstructured{Object: o}); err != nil {
			return fmt.Errorf("delete: %w", err)
		}
	}
	return nil
}

// outcome returns the error that stands for the outcome.
func outcome(out call.Output, backoff time.Duration) error {
	switch {
	case out.Permanent != nil:
		return gopf.Permanent(errors.New(*out.Permanent))
	case out.Deny != nil:
		return gopf.Deny("%s", *out.Deny)
	case out.Wait != nil:
		return gopf.Wait(delay(out.Wait, backoff), "%s", out.Wait.Text())
	case out.Retry != nil:
		text := out.Retry.Text()
		if text == "" {
			text = "the handler asks for another call"
		}
		return gopf.RetryAfter(delay(out.Retry, backoff), errors.New(text))
	}
	return nil
}

func delay(d *call.Delay, backoff time.Duration) time.Duration {
	if d.After > 0 {
		return time.Duration(d.After)
	}
	return backoff
}

// failure returns the error of a failed call as the framework understands it.
func failure(err error, backoff time.Duration) error {
	var decided *call.Error
	switch {
	case !errors.As(err, &decided):
		return err
	case decided.Permanent:
		return gopf.Permanent(err)
	case decided.After != nil:
		return gopf.RetryAfter(*decided.After, err)
	}
	return gopf.RetryAfter(backoff, err)
}

// inputVars are the variables of expressions.
func inputVars(in *call.Input) map[string]any {
	vars := map[string]any{
		"object": in.Object, "old": in.Old, "diff": func() any { return in.Diff.Tuples() }, "reason": in.Reason, "event": in.Event,
		"field": in.Field, "retry": int64(in.Retry), "key": in.Key, "review": map[string]any{}, "memo": nil,
	}
	if in.Object == nil {
		vars["object"] = map[string]any{}
	}
	if in.Old == nil {
		vars["old"] = map[string]any{}
	}
	if in.Review != nil {
		vars["review"] = reviewVars(in.Review)
	}
	if in.Memo != nil {
		var memo any
		if json.Unmarshal(in.Memo, &memo) == nil {
			vars["memo"] = memo
		}
	}
	return vars
}

// reviewVars returns a review as expressions see it: with the names of its JSON.
func reviewVars(r *call.Review) map[string]any {
	vars := map[string]any{"operation": r.Operation, "user": r.User, "dryRun": r.DryRun}
	if r.Subresource != "" {
		vars["subresource"] = r.Subresource
	}
	return vars
}

// outputOf returns the value of an expression as the output of a handler. null means
// nothing.
func outputOf(v any) (call.Output, error) {
	if v == nil {
		return call.Output{}, nil
	}
	fields, ok := v.(map[string]any)
	if !ok {
		return call.Output{}, errors.New("the output is not an object")
	}
	return call.OutputOf(fields)
}

// splitPath returns the keys of a path that was checked before.
func splitPath(path string) []string {
	p, err := jsonvalue.ParsePath(path)
	if err != nil {
		return []string{path}
	}
	return p
}
