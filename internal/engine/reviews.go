package engine

import (
	"context"
	"net/http"
	"slices"
	"time"

	"gopf.dev/gopf/internal/access"
	"gopf.dev/gopf/internal/admission"
	"gopf.dev/gopf/internal/metrics"
	"gopf.dev/gopf/internal/registry"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/storage"
	"gopf.dev/gopf/webhook"
)

// Admission says how the cluster asks the operator for its consent.
type Admission struct {
	Server  webhook.Server // nil for none
	Managed string         // the name of the configurations to be kept; "" for none
	Dev     bool           // without a server, use one for development

	Substitute Substitute // replaces the server in tests
}

// Substitute replaces the webhook server of an operator in tests, whose cluster may
// be in memory.
type Substitute struct {
	// Server returns the server that is used in place of the declared one, which may
	// be nil. managed is the name of the configurations. nil means no replacement.
	Server func(declared webhook.Server, managed string) webhook.Server
}

// lingering is how long reviews are answered still after the cluster was told not
// to ask anymore, or a Service not to lead here.
const lingering = 2 * time.Second

// newControl makes what answers reviews; nil if there are no handlers for them.
func (s *server) newControl() (*admission.Control, error) {
	handlers := s.Handlers.Of(registry.Reviews)
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

// own is what the operator writes on objects for itself, as far as its storages
// tell.
func (s *server) own() *admission.Own {
	own := &admission.Own{Finalizer: s.Process.Finalizer}
	for _, kept := range []any{s.Process.Progress, s.Process.Base} {
		if tracer, ok := kept.(storage.Tracer); ok {
			places, _ := tracer.Traces() // there may be more elsewhere, for example in a database
			own.Prefixes, own.Keys = append(own.Prefixes, places.Prefixes...), append(own.Keys, places.Keys...)
		}
	}
	slices.Sort(own.Prefixes)
	slices.Sort(own.Keys)
	own.Prefixes, own.Keys = slices.Compact(own.Prefixes), slices.Compact(own.Keys)
	return own
}

// managed is the name of the configurations to be kept; "" for none. Nobody else
// tells the cluster of a server for development.
func (s *server) managed() string {
	if s.Admission.Managed == "" && s.Admission.Server == nil {
		return "dev.gopf.dev"
	}
	return s.Admission.Managed
}

// reviewed counts a review of a webhook that there is.
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

// memos are what is kept in memory with an object; nil if it is not known.
func (s *server) memos(info kind.Info, uid string) *registry.Memos {
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

// admissionNeeds are what keeping the configurations of webhooks takes.
func (s *server) admissionNeeds() (all []access.Need) {
	if s.managed() == "" {
		return nil
	}
	for _, plural := range []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"} {
		mutating := plural == "mutatingwebhookconfigurations"
		need := access.Need{
			Info: kind.Info{Group: "admissionregistration.k8s.io", Version: "v1", Plural: plural}, Name: s.managed(),
			Verbs: []string{"get", "list", "watch", "patch"}, Without: "the cluster is not told to ask this operator",
		}
		for _, h := range s.Handlers.Of(registry.Reviews) {
			if h.Admission.Mutating == mutating {
				need.By = append(need.By, h.ID)
			}
		}
		if len(need.By) == 0 {
			continue
		}
		all = append(all, need)
		if s.control != nil && s.control.Absent(mutating) { // a creation cannot be limited to a name
			need.Name, need.Verbs = "", []string{"create"}
			all = append(all, need)
		}
	}
	return all
}

// answerReviews answers reviews until the context is done. It calls fail if it
// cannot any longer.
func (s *server) answerReviews(ctx context.Context, fail func(error)) {
	if s.control == nil || !s.awaitIndices(ctx) {
		return
	}
	if err := s.control.Run(ctx); err != nil && ctx.Err() == nil {
		fail(err)
	} else if err != nil {
		s.Log.Error("Admission control has not ended well.", "error", err)
	}
}

// longPause is how long a pause lasts, at the least, in which reviews are answered
// without indices.
const longPause = 5 * time.Second

// awaitIndices waits until handlers of reviews can rely on indices; it is false if
// the context is done. In pauses they are not filled, but reviews are answered.
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
