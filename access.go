package gopf

import (
	"cmp"
	"log/slog"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/client"
	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/internal/engine"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/recorder"
)

// newCluster returns the state that the clients of all handlers share.
func (op *Operator) newCluster(h engine.Handle, log *slog.Logger) *apiclient.Cluster {
	return op.clusterOf(h.Objects(), h.Post, h.RESTConfig, log)
}

// clusterOf returns the state that the clients of all handlers share, from its parts.
func (op *Operator) clusterOf(objects *apiclient.Objects, post func(recorder.Event), config func() *rest.Config, log *slog.Logger) *apiclient.Cluster {
	manager := op.Settings.Posting.ReportingComponent
	if manager == "" || manager == DefaultSettings().Posting.ReportingComponent { // the default does not identify this operator
		manager = cmp.Or(programName(), "gopf")
	}
	return &apiclient.Cluster{
		Objects: objects, Types: op.types, Manager: manager, Level: op.Settings.Posting.Level,
		Post: posts(post), REST: config, Log: log,
	}
}

// posts returns a function that posts events about any object.
func posts(post func(recorder.Event)) func(object.Identity, string, string, string) {
	return func(about object.Identity, t, reason, message string) {
		post(recorder.Event{About: about, Type: t, Reason: reason, Message: message})
	}
}

// apiFor returns the client for a handler call. It uses place for it, which saves an
// allocation.
func apiFor(req *handler.Request, place *apiclient.Client) client.Client {
	switch api := req.API.(type) {
	case *apiclient.Cluster:
		*place = api.For(req.Body.Namespace, req.Wrote, req.Hold)
		return place
	case client.Client: // from a test
		return api
	}
	return nil
}
