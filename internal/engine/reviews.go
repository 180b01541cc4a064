package engine

import (
	"context"
	"time"

	"gopf.dev/gopf/internal/admission"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/kind"
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
func (s *server) newControl() (*admission.Control, error) {
	handlers := s.Handlers.Of(handler.Reviews)
	if len(handlers) == 0 {
		return nil, nil
	}
	declared := s.Admission.Server
	if substitute := s.Admission.Substitute.Server; substitute != nil {
		declared = substitute(declared, s.managed())
	}
	chosen, err := admission.ChooseServer(declared, s.Admission.Dev, s.Log)
	if err != nil {
		return nil, err
	}
	o := admission.DefaultReviewerOptions()
	o.Log, o.Memos, o.API = s.Log, s.memos, s.forHandlers()
	if s.vitals.Metrics() != nil {
		o.Observe = s.vitals.Reviewed
	}
	return admission.New(admission.Config{
		Client: s.client.Ungated(), Server: chosen, Managed: s.managed(), Handlers: handlers,
		Namespace: s.Posting.Namespace, Reviewer: o, Linger: lingering, Log: s.Log, Own: admission.OwnOf(s.Process.Finalizer, s.Process.Former, s.Process.Progress, s.Process.Base), Stay: s.Election.Enabled,
	})
}

// managed returns the name of the webhook configurations that the operator maintains.
// An empty name means none. The server for development always has configurations,
// because users cannot write them in advance.
func (s *server) managed() string {
	if s.Admission.Managed == "" && s.Admission.Server == nil {
		return s.Admission.DevName
	}
	return s.Admission.Managed
}

// memos returns the memos of an object. nil means that the object is unknown.
func (s *server) memos(info kind.Info, uid string) *handler.Memos {
	served := s.served.Load()
	if served == nil {
		return nil
	}
	for _, c := range *served {
		if c.Info().GVR() == info.GVR() {
			return c.Memos(uid)
		}
	}
	return nil
}

// answerReviews responds to admission reviews until the context is done. It calls fail
// if the webhook server fails before that.
func (s *server) answerReviews(ctx context.Context, fail func(error)) {
	if s.control == nil || !s.awaitIndices(ctx) {
		return
	}
	if err := s.control.Run(ctx); err != nil && ctx.Err() == nil {
		fail(err)
	} else if err != nil {
		s.Log.Error("Admission webhooks failed to shut down cleanly.", "error", err)
	}
}

// longPause is the interval at which awaitIndices checks for a pause.
const longPause = 5 * time.Second

// awaitIndices waits until the indices are filled, because admission handlers may use
// them. During a pause they are not filled; then it stops waiting, because reviews must
// get a response. It returns false if the context is done.
func (s *server) awaitIndices(ctx context.Context) bool {
	ticker := time.NewTicker(longPause)
	defer ticker.Stop()
	for {
		select {
		case <-s.barrier.Open():
			return true
		case <-ctx.Done():
			return false
		case <-ticker.C:
			if s.paused.Load() {
				return true
			}
		}
	}
}
