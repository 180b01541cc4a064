package engine

import (
	"context"
	"time"

	"gopf.dev/gopf/internal/admission"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/webhook"
)

// Admission configures the admission webhooks.
type Admission struct {
	Server  webhook.Server // nil means none, unless Dev is set
	Managed string         // the name of the webhook configurations to maintain; "" means none
	Dev     bool           // use a server for development if Server is nil
	DevName string         // the name of the webhook configurations for that server

	Substitute Substitute // replaces the server in tests
}

// Substitute replaces the webhook server in tests, for example with an in-memory one.
type Substitute struct {
	// Server returns the replacement of the declared server. declared may be nil.
	// managed is the name of the webhook configurations. nil means no replacement.
	Server func(declared webhook.Server, managed string) webhook.Server
}

// lingering is the time that the webhook server still responds after its configuration
// or the endpoint of its Service is removed. The API server notices that with a delay.
const lingering = 2 * time.Second

// newControl returns the admission control. nil means that there are no admission
// handlers.
func (op *operator) newControl() (*admission.Control, error) {
	handlers := op.Handlers.Of(handler.Reviews)
	if len(handlers) == 0 {
		return nil, nil
	}
	declared := op.Admission.Server
	if substitute := op.Admission.Substitute.Server; substitute != nil {
		declared = substitute(declared, op.managed())
	}
	chosen, err := admission.ChooseServer(declared, op.Admission.Dev, op.Log)
	if err != nil {
		return nil, err
	}
	o := admission.DefaultReviewerOptions()
	o.LimitMemory(memoryLimit())
	o.Log, o.Memos, o.API = op.Log, op.controllers.Memos, op.forReviewers()
	if op.vitals.Metrics() != nil {
		o.Observe = op.vitals.Reviewed
	}
	return admission.New(admission.Config{
		Client: op.client.Ungated(), Server: chosen, Managed: op.managed(), Handlers: handlers,
		Namespace: op.Posting.Namespace, Reviewer: o, Linger: lingering, Log: op.Log, Own: admission.OwnOf(op.Process.Finalizer, op.Process.Former, op.Process.Progress, op.Process.Base), Stay: op.Election.Enabled,
	})
}

// managed returns the name of the webhook configurations that the operator maintains.
// An empty name means none. The server for development always has configurations,
// because users cannot write them in advance.
func (op *operator) managed() string {
	if op.Admission.Managed == "" && op.Admission.Server == nil {
		return op.Admission.DevName
	}
	return op.Admission.Managed
}

// answerReviews responds to admission reviews until the context is done. It calls fail
// if the webhook server fails before that.
func (op *operator) answerReviews(ctx context.Context, fail func(error)) {
	if op.control == nil || !op.controllers.AwaitIndices(ctx) {
		return
	}
	if err := op.control.Run(ctx); err != nil && ctx.Err() == nil {
		fail(err)
	} else if err != nil {
		op.Log.Error("Admission webhooks failed to shut down cleanly.", "error", err)
	}
}
