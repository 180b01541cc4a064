package engine

import (
	"context"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/recorder"
	"gopf.dev/gopf/kind"
)

// forHandlers returns the API that handlers use, except those of reviews.
func (op *operator) forHandlers() handler.API { return op.handlersUse(op) }

// forReviewers returns the API that the handlers of reviews use. It has separate capacity:
// requests of other handlers may wait for these very reviews.
func (op *operator) forReviewers() handler.API {
	return op.handlersUse(&reviewAPI{op, op.client.Reserved(forReviewHandlers)})
}

func (op *operator) handlersUse(api Handle) handler.API {
	if op.ForHandlers == nil {
		return api
	}
	return op.ForHandlers(api)
}

// reviewAPI is the API of the operator with another client.
type reviewAPI struct {
	*operator
	client *kube.Client
}

// Objects returns a client for objects of any kind.
func (r *reviewAPI) Objects() *apiclient.Objects {
	return &apiclient.Objects{API: r.client, Known: r.cluster, Shared: r.lookups}
}

// Wake calls delayed handlers of an object now; see [serving.Controllers.Wake].
func (op *operator) Wake(of kind.Selector, namespace, name string, ids []string) {
	op.controllers.Wake(of, namespace, name, ids)
}

// WakeOwner calls delayed handlers of an owner now; see [serving.Controllers.WakeOwner].
func (op *operator) WakeOwner(of kind.Selector, namespace, uid string) {
	op.controllers.WakeOwner(of, namespace, uid)
}

// RESTConfig returns a configuration for other clients of the cluster.
func (op *operator) RESTConfig() *rest.Config { return op.client.RESTConfig() }

// Objects returns a client for objects of any kind.
func (op *operator) Objects() *apiclient.Objects {
	return &apiclient.Objects{API: op.client, Known: op.cluster, Shared: op.lookups}
}

// Post queues a Kubernetes event. It does not wait for the API server.
func (op *operator) Post(e recorder.Event) { op.poster.Post(e) }

// probe asks for the version of the API server while the operator is idle; see
// [vitals.Vitals.Probe].
func (op *operator) probe(ctx context.Context) {
	client := op.client.WithBackoffs(nil).Reserved(forProbes)
	op.vitals.Probe(ctx, func(ctx context.Context) {
		_, _ = client.Version(ctx) // the client's observer notes any response
	})
}
