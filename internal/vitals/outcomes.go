package vitals

import (
	"net/http"
	"time"

	"gopf.dev/gopf/internal/admission"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/metrics"
)

// Activities returns the observer of the handlers with the ids, which belong to no
// resource. nil means that metrics are disabled.
func (v *Vitals) Activities(ids []string) execute.Observer {
	if v.metrics == nil {
		return nil
	}
	return observer(v.metrics.Activities(ids...).Handler)
}

// Resource returns the counters of a resource, and the observer of its handlers. nil
// means that metrics are disabled.
func (v *Vitals) Resource(name string, handlers handler.Set) (*metrics.Resource, execute.Observer) {
	if v.metrics == nil {
		return nil, nil
	}
	ids := make([]string, len(handlers))
	for i, h := range handlers {
		ids[i] = h.ID
	}
	counts := v.metrics.Resource(name, ids...)
	return counts, observer(counts.Handler)
}

// Reviewed counts an admission review. Reviews for unknown webhooks are ignored.
func (v *Vitals) Reviewed(o admission.Observation) {
	if o.ID == "" {
		return
	}
	outcome := metrics.Denied
	switch {
	case o.Allowed:
		outcome = metrics.Allowed
	case o.Code >= http.StatusInternalServerError || o.Code == admission.CodeGone: // no handler has denied it
		outcome = metrics.ReviewFailed
	}
	v.metrics.Webhook(o.ID).Reviewed(outcome, o.Duration)
}

// observer returns a function that counts the calls of handlers.
func observer(find func(id string) *metrics.Handler) execute.Observer {
	return func(id string, o execute.Outcome, took time.Duration) { find(id).Ran(OutcomeOf(o), took) }
}

// OutcomeOf returns the outcome of a call as the metrics count it.
func OutcomeOf(o execute.Outcome) metrics.Outcome {
	temporary, _ := o.Err.(*handler.TemporaryError)
	_, unfinished := o.Err.(*handler.UnfinishedError)
	_, unfit := o.Err.(*handler.UndecodableError)
	switch {
	case o.Void && !unfit:
		return metrics.Stopped
	case o.Ignored != nil:
		return metrics.Ignored
	case o.Final && o.Err != nil:
		return metrics.Failed
	case o.Final:
		return metrics.Succeeded
	case unfinished, temporary != nil && temporary.Wait:
		return metrics.Waiting
	}
	return metrics.Retried
}
