package process

import (
	"context"
	"slices"
	"time"

	"gopf.dev/gopf/internal/apply"
	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/pause"
)

// pausedCondition is the condition of paused objects. Other objects do not have it.
const pausedCondition = "Paused"

// showPause writes the condition Paused, or removes it. Only objects whose reconcile handlers
// have conditions get it. found is the pause of the object; nil means none.
func (p *Processor) showPause(ctx context.Context, m *Memory, found *pause.Pause) {
	o := m.owner()
	body := o.newest
	if found == nil && o.judged && !o.paused || body.Deleting || p.stopping() || p.HandedOver != nil && p.HandedOver(body) {
		return // the status must not be decoded in every turn
	}
	at := slices.IndexFunc(p.Reconcile.Handlers, func(h *handler.Handler) bool { return !h.Reconcile.NoConditions })
	if at < 0 {
		return
	}
	o.judged, o.paused = true, found != nil
	text := ""
	if found != nil {
		text = children.CutMessage(pauseText(found))
	}
	if shown, message := shownPause(body); shown == (found != nil) && (!shown || message == text) {
		return
	}
	if conditions, _ := p.Reconcile.Conditions(ctx, p.Resource); !conditions {
		return
	}
	asked, now := &patch.Patch{}, time.Now()
	asked.Edit(func(fields map[string]any) {
		if found == nil {
			children.RemoveCondition(fields, pausedCondition)
			return
		}
		children.SetCondition(fields, children.Condition{
			Type: pausedCondition, Status: true, Reason: "Annotation", Message: text, Generation: body.Generation(),
		}, now)
	})
	lasting, cancel := p.lasting(ctx)
	defer cancel()
	r := &reconciling{Processor: p, memory: m, handler: p.Reconcile.Handlers[at], state: &reconciled{}, body: body}
	if _, err := r.send(lasting, asked, &patch.Patch{}, apply.Finalizer{}); err != nil {
		o.judged, o.paused = false, true // the next turn tries again
		p.Logger(body).Warn("The condition Paused cannot be written; trying again in the next turn.", "error", err)
	}
}

// pauseText describes a pause for the condition.
func pauseText(found *pause.Pause) string {
	text := "paused by the annotation " + found.Where()
	if !found.Until.IsZero() {
		text += " until " + found.Until.UTC().Format(time.RFC3339)
	}
	if found.Reason != "" {
		text += ": " + found.Reason
	}
	return text
}

// shownPause reports whether the object has the condition Paused, and returns its message.
func shownPause(body *object.Body) (shown bool, message string) {
	found, _ := body.Lookup("status", "conditions")
	list, _ := found.([]any)
	for _, item := range list {
		if c, ok := item.(map[string]any); ok && c["type"] == pausedCondition {
			message, _ = c["message"].(string)
			return c["status"] == "True", message
		}
	}
	return false, ""
}
