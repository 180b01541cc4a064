package process

import (
	"context"
	"maps"
	"time"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
)

// verdict is the outcome of the last call of a reconcile handler, for conditions.
type verdict struct {
	ready   bool
	stalled bool // it is not called again until the object changes
	reason  string
	message string
}

// judge notes the outcome of the call, and puts the conditions of the object into the
// patch.
func (r *reconciling) judge(ctx context.Context, outcome execute.Outcome, asked *patch.Patch) {
	r.state.verdict = verdictOf(outcome, r.result.Waiting, r.result.Failed, r.problemReason())
	if r.handler.Reconcile.NoConditions {
		return
	}
	r.setConditions(ctx, r.worst(), r.body, asked)
}

func (r *reconciling) problemReason() string {
	if len(r.result.Problems) == 0 {
		return ""
	}
	return r.result.Problems[0].Reason
}

// verdictOf is the verdict about one call. problem is the reason of the first child that
// could not be applied.
func verdictOf(outcome execute.Outcome, waiting, failed, problem string) verdict {
	switch {
	case outcome.Err != nil && outcome.Final:
		return verdict{stalled: true, reason: "Failed", message: outcome.Message}
	case outcome.Err != nil && problem != "":
		return verdict{reason: problem, message: outcome.Message}
	case outcome.Err != nil:
		return verdict{reason: "Retrying", message: outcome.Message}
	case failed != "":
		return verdict{reason: "ChildFailed", message: failed}
	case waiting != "":
		return verdict{reason: "ChildrenNotReady", message: waiting}
	}
	return verdict{ready: true, reason: "ChildrenReady", message: "All children are ready."}
}

// worst returns the verdict that counts for the object: the first of a stalled handler,
// else the first of one that is not ready.
func (r *reconciling) worst() verdict {
	worst := r.state.verdict
	for _, h := range r.Reconcile.Handlers {
		c := r.memory.owner().call(h.ID)
		if c == nil || c.verdict.reason == "" {
			continue
		}
		if c.verdict.stalled && !worst.stalled || !c.verdict.ready && worst.ready {
			worst = c.verdict
		}
	}
	return worst
}

// setConditions puts the conditions into the patch, if the schema of the resource has
// them. Conditions that are not true and would only repeat Ready are removed. If the object
// has them already and the patch is empty, it stays empty: an edit would decode
// the whole object, and at a restart that would be all objects.
func (p *Processor) setConditions(ctx context.Context, v verdict, body *object.Body, asked *patch.Patch) {
	conditions, observed := p.Reconcile.Conditions(ctx, p.Resource)
	if !conditions && !observed {
		return
	}
	now, generation := time.Now(), body.Generation()
	edit := func(fields map[string]any) {
		if observed {
			children.SetObserved(fields, generation)
		}
		if !conditions {
			return
		}
		children.SetCondition(fields, children.Condition{Type: "Ready", Status: v.ready, Reason: v.reason, Message: v.message, Generation: generation}, now)
		for kind, is := range map[string]bool{"Reconciling": !v.ready && !v.stalled, "Stalled": v.stalled} {
			if is {
				children.SetCondition(fields, children.Condition{Type: kind, Status: true, Reason: v.reason, Message: v.message, Generation: generation}, now)
			} else {
				children.RemoveCondition(fields, kind)
			}
		}
	}
	if !asked.Empty() || body.Stale() || changesStatus(body, edit) {
		asked.EditStatus(edit)
	}
}

// changesStatus reports whether an edit changes the status of the object. The edit must not
// change the values in the status, but may replace them.
func changesStatus(body *object.Body, edit patch.Edit) bool {
	value, _ := body.Lookup("status")
	before, ok := value.(map[string]any)
	if !ok {
		return true
	}
	after := map[string]any{"status": maps.Clone(before)}
	edit(after)
	return !diff.Equal(before, after["status"])
}

// explainTeardown puts the name of the child that the deletion waits for into the
// conditions.
func (v *view) explainTeardown(ctx context.Context, c *change) {
	for _, h := range v.Reconcile.Handlers {
		if h.Reconcile.NoConditions {
			continue
		}
		part := execute.Part{Handler: h.ID}
		why := verdict{reason: "Deleting", message: v.memory.owner().teardown.blocking + " is being deleted"}
		v.setConditions(ctx, why, v.body, &part.Patch)
		if !part.Patch.Empty() {
			c.parts = append(c.parts, part)
		}
		return
	}
}
