package engine

import (
	"context"
	"net/http"
	"slices"
	"time"

	"gopf.dev/gopf/internal/admission"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/metrics"
	"gopf.dev/gopf/internal/rbac"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/storage"
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
	if s.vitals.metrics != nil {
		o.Observe = s.reviewed
	}
	return admission.New(admission.Config{
		Client: s.client.Ungated(), Server: chosen, Managed: s.managed(), Handlers: handlers,
		Namespace: s.Posting.Namespace, Reviewer: o, Linger: lingering, Log: s.Log, Own: s.own(), Stay: s.Election.Enabled,
	})
}

// own describes the fields that the framework writes on objects: the finalizer and the
// keys of the storages that implement [storage.Tracer].
func (s *server) own() *admission.Own {
	own := &admission.Own{Finalizer: s.Process.Finalizer, Former: s.Process.Former}
	for _, kept := range []any{s.Process.Progress, s.Process.Base} {
		if tracer, ok := kept.(storage.Tracer); ok {
			places, _ := tracer.Traces() // records outside the object, such as in a database, do not matter here
			own.Prefixes, own.Keys = append(own.Prefixes, places.Prefixes...), append(own.Keys, places.Keys...)
		}
	}
	slices.Sort(own.Prefixes)
	slices.Sort(own.Keys)
	own.Prefixes, own.Keys = slices.Compact(own.Prefixes), slices.Compact(own.Keys)
	return own
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

// reviewed counts a review in the metrics. Reviews for unknown webhooks are ignored.
func (s *server) reviewed(o admission.Observation) {
	if o.ID == "" {
		return
	}
	outcome := metrics.Denied
	switch {
	case o.Allowed:
		outcome = metrics.Allowed
	case o.Code >= http.StatusInternalServerError:
		outcome = metrics.ReviewFailed
	}
	s.vitals.metrics.Webhook(o.ID).Reviewed(outcome, o.Duration)
}

// memos returns the memos of an object. nil means that the object is unknown.
func (s *server) memos(info kind.Info, uid string) *handler.Memos {
	served := s.served.Load()
	if served == nil {
		return nil
	}
	for _, r := range *served {
		if r.kind.Resource.GVR() != info.GVR() {
			continue
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if m := r.memories[uid]; m != nil {
			return m.Memos()
		}
	}
	return nil
}

// admissionNeeds returns the permissions for maintaining webhook configurations.
func (s *server) admissionNeeds() (all []rbac.Need) {
	if s.managed() == "" {
		return nil
	}
	for _, plural := range []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"} {
		mutating := plural == "mutatingwebhookconfigurations"
		need := rbac.Need{
			Info: kind.Info{Group: "admissionregistration.k8s.io", Version: "v1", Plural: plural}, Name: s.managed(),
			Verbs: []string{"get", "list", "watch", "patch"}, Without: "the API server does not call the webhooks of this operator",
		}
		for _, h := range s.Handlers.Of(handler.Reviews) {
			if h.Admission.Mutating == mutating {
				need.By = append(need.By, h.ID)
			}
		}
		if len(need.By) == 0 {
			continue
		}
		all = append(all, need)
		if s.control != nil && s.control.Absent(mutating) { // RBAC cannot limit create to a name
			need.Name, need.Verbs = "", []string{"create"}
			all = append(all, need)
		}
	}
	return all
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
		case <-s.gate.Open():
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
