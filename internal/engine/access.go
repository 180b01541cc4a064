package engine

import (
	"context"

	"gopf.dev/gopf/internal/admission"
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

// needs returns the permissions for leader election, admission webhooks and peering.
func (op *operator) needs() (all []rbac.Need) {
	cluster := op.controllers.Cluster()
	all = op.children.Needs(cluster)
	if op.Election.Enabled {
		all = append(all, rbac.Lease(op.leaseNamespace(), op.Election.Name)...)
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
