package engine

import (
	"context"
	"maps"
	"slices"
	"strings"

	"gopf.dev/gopf/internal/admission"
	"gopf.dev/gopf/internal/peering"
	"gopf.dev/gopf/internal/rbac"
)

// review reports missing permissions, in the log and in health, until the context is
// done.
func (s *server) review(ctx context.Context) {
	_, fixed := s.Namespaces.Fixed()
	framework := rbac.Framework{Definitions: !s.ScanningDisabled, Namespaces: !fixed, Posting: s.Posting.Enabled}
	if len(s.Namespaces) > 0 {
		framework.PostingIn = s.Posting.Namespace
	}
	reviewer := rbac.NewReviewer(rbac.Config{
		API: s.client.Ungated(), Log: s.Log, Jitter: s.client.Jitter(), Granted: s.hurry,
		Needs: func() []rbac.Need { return append(rbac.Needs(s.uses(), framework), s.needs()...) },
		Namespaces: func() []string {
			s.mu.Lock()
			defer s.mu.Unlock()
			return slices.Collect(maps.Keys(s.namespaces))
		},
	})
	s.vitals.Reviewing(reviewer)
	reviewer.Run(ctx)
}

// needs returns the permissions for leader election, admission webhooks and peering.
func (s *server) needs() (all []rbac.Need) {
	all = s.ownedNeeds()
	if s.Election.Enabled {
		all = append(all, rbac.Lease(s.leaseNamespace()))
	}
	if s.control != nil {
		all = append(all, admission.Needs(s.Handlers, s.managed(), s.control.Absent)...)
	}
	if s.Peering.Standalone {
		return all
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, info := range peering.Resources(s.cluster, s.Peering.Clusterwide) {
		all = append(all, rbac.Peering(info))
	}
	return all
}

// uses returns how handlers use the served resources, sorted by resource.
func (s *server) uses() (uses []rbac.Use) {
	for _, c := range *s.served.Load() {
		uses = append(uses, c.Use())
	}
	slices.SortFunc(uses, func(a, b rbac.Use) int { return strings.Compare(a.Info.String(), b.Info.String()) })
	return uses
}

// hurry ends the error backoff of all objects. It is called when a missing permission
// is granted, so requests that were forbidden may succeed now.
func (s *server) hurry() {
	for _, c := range *s.served.Load() {
		c.Hurry()
	}
}
