package engine

import (
	"context"
	"log/slog"
	"time"

	"gopf.dev/gopf/internal/admission"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/peering"
	"gopf.dev/gopf/internal/rbac"
)

// reviewAccess reports missing permissions, in the log and in health, until the context is
// done.
func (op *operator) reviewAccess(ctx context.Context) {
	_, fixed := op.Namespaces.Fixed()
	framework := rbac.Framework{Definitions: !op.ScanningDisabled, Namespaces: !fixed, Posting: op.Posting.Enabled}
	if len(op.Namespaces) > 0 {
		framework.PostingIn = op.Posting.Namespace
	}
	reviewer := rbac.NewReviewer(rbac.Config{
		API: op.client.Ungated(), Log: op.Log, Jitter: op.client.Jitter(),
		Granted:    op.controllers.Hurry, // requests that were forbidden may succeed now
		Needs:      func() []rbac.Need { return append(rbac.Needs(op.controllers.Uses(), framework), op.needs()...) },
		Namespaces: op.controllers.NamespaceNames,
	})
	op.vitals.Reviewing(reviewer)
	reviewer.Run(ctx)
}

// forReviews is the number of reviews of requests to the operator's endpoints that may be in
// flight, besides all other requests.
const forReviews = 4

// reviewing returns the client that reviews requests to the operator's endpoints. A standby
// replica reviews them as well. Failures are responses to the clients, so there is one
// attempt, and the guard logs them.
func reviewing(client *kube.Client) *kube.Client {
	return client.Reserved(forReviews).Derive(func(o *kube.Options) {
		o.Gate, o.Log = nil, slog.New(slog.DiscardHandler)
		o.Backoffs = func(func(time.Duration) bool) {}
	})
}

// needs returns the permissions for leader election, secure endpoints, admission webhooks and
// peering.
func (op *operator) needs() (all []rbac.Need) {
	cluster := op.controllers.Cluster()
	all = op.children.Needs(cluster)
	if op.Election.Enabled {
		all = append(all, rbac.Lease(op.leaseNamespace(), op.Election.Name)...)
	}
	if h := op.Config.Health; h.SecureMetrics && h.Metrics != "" || h.SecureInsight && op.Insight != "" {
		all = append(all, rbac.EndpointReviews()...)
	}
	if op.control != nil {
		all = append(all, admission.Needs(op.Handlers, op.managed(), op.control.Absent)...)
	}
	if op.Peering.Standalone {
		return all
	}
	for _, info := range peering.Resources(cluster, op.Peering.Clusterwide) {
		all = append(all, rbac.Peering(info))
	}
	return all
}
