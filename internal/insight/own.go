package insight

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/childwatch"
	"gopf.dev/gopf/internal/connect"
	"gopf.dev/gopf/internal/discovery"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/lease"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/peering"
	"gopf.dev/gopf/kind"
)

// leases is the resource of leader elections.
var leases = kind.Info{Group: "coordination.k8s.io", Version: "v1", Plural: "leases", Kind: "Lease", Namespaced: true}

// leaseTarget returns the location of the operator's Lease. ok is false if it has none.
func (s *session) leaseTarget() (t kube.Target, ok bool) {
	if s.Lease.Name == "" {
		return t, false
	}
	namespace := s.Lease.Namespace
	for _, fallback := range []string{s.namespace, "default"} {
		if namespace == "" {
			namespace = fallback
		}
	}
	return kube.Target{Info: leases, Namespace: namespace, Name: s.Lease.Name}, true
}

// refuseRunning returns an error if the operator, or another one of its peering, runs.
func (s *session) refuseRunning(ctx context.Context) error {
	const advice = "; stop it first, or use --force"
	if t, ok := s.leaseTarget(); ok {
		body, err := s.client.Get(ctx, t)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("read the lease %s/%s: %w", t.Namespace, t.Name, err)
		default:
			holder, err := lease.HolderOf(body, time.Now())
			if err != nil {
				return err
			}
			if holder != "" {
				return fmt.Errorf("the operator runs: %s holds the lease %s/%s%s", holder, t.Namespace, t.Name, advice)
			}
		}
	}
	places, err := s.peerings(ctx)
	if err != nil {
		return err
	}
	alive, err := peering.Alive(ctx, s.client, s.Peering.Name, places, time.Now())
	if err != nil {
		return err
	}
	if len(alive) > 0 {
		return fmt.Errorf("an operator of the peering %q runs: %s%s", s.Peering.Name, alive[0].Identity, advice)
	}
	return nil
}

// peerings returns the places of the operator's peerings.
func (s *session) peerings(ctx context.Context) ([]peering.Place, error) {
	if s.Peering.Name == "" {
		return nil, nil
	}
	resources := peering.Resources(s.cluster, s.Peering.Clusterwide)
	if s.Peering.Clusterwide || len(resources) == 0 {
		return peering.Places(resources, nil), nil
	}
	namespaces, err := connect.Matching(ctx, s.client, s.Peering.Namespaces)
	return peering.Places(resources, namespaces), err
}

// deleteWebhooks deletes the webhook configurations of the operator.
func (s *session) deleteWebhooks(ctx context.Context, r Releasing) error {
	if s.Webhooks == "" {
		return nil
	}
	var failures []error
	for _, plural := range []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"} {
		info := kind.Info{Group: "admissionregistration.k8s.io", Version: "v1", Plural: plural}
		failures = append(failures, s.deleteOne(ctx, r, kube.Target{Info: info, Name: s.Webhooks}))
	}
	return errors.Join(failures...)
}

// deleteRecords deletes the lease of the operator, and the records of stopped operators in
// its peerings.
func (s *session) deleteRecords(ctx context.Context, r Releasing) error {
	var failure error
	if t, ok := s.leaseTarget(); ok {
		failure = s.deleteOne(ctx, r, t)
	}
	places, err := s.peerings(ctx)
	if err != nil {
		return errors.Join(failure, err)
	}
	swept, err := peering.Sweep(ctx, s.client, s.Peering.Name, places, time.Now())
	if swept > 0 {
		fmt.Fprintf(r.Out, "%d records of stopped operators removed from the peering %s\n", swept, s.Peering.Name)
	}
	return errors.Join(failure, err)
}

// deleteOne deletes an object, unless it does not exist.
func (s *session) deleteOne(ctx context.Context, r Releasing, t kube.Target) error {
	name := strings.TrimPrefix(t.Info.Plural+"/"+t.Namespace, "/") + "/" + t.Name
	switch err := s.client.Delete(ctx, t, kube.DeleteOptions{}); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("delete %s: %w", name, err)
	default:
		fmt.Fprintf(r.Out, "%s deleted\n", strings.ReplaceAll(name, "//", "/"))
	}
	return nil
}

// releaseChildren removes the label of the operator from the children of its reconcile
// handlers. The children stay, with their owner references.
func (s *session) releaseChildren(ctx context.Context, r Releasing) error {
	if s.Name == "" {
		return nil
	}
	done := map[string]bool{}
	var failures []error
	for _, h := range s.Handlers.Of(handler.Reconciles) {
		for _, owned := range h.Reconcile.Owned {
			for _, info := range owned.Of.Select(s.cluster) {
				if done[info.String()] {
					continue
				}
				done[info.String()] = true
				failures = append(failures, s.unlabel(ctx, r, info))
			}
		}
	}
	return errors.Join(failures...)
}

// unlabel removes the label of the operator from all children of a kind.
func (s *session) unlabel(ctx context.Context, r Releasing, info kind.Info) error {
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{childwatch.Label: nil}}})
	if err != nil {
		return err
	}
	var failure error
	released := 0
	err = s.list(ctx, discovery.Served{Info: info}, childwatch.Label+"="+s.Name, nil, func(body *object.Body) {
		t := kube.Target{Info: info, Namespace: body.Namespace, Name: body.Name}
		_, err := s.client.Patch(ctx, t, types.MergePatchType, raw)
		switch {
		case err == nil:
			released++
		case !apierrors.IsNotFound(err):
			failure = fmt.Errorf("remove the label of %s %s/%s: %w", info, body.Namespace, body.Name, err)
		}
	})
	if released > 0 {
		fmt.Fprintf(r.Out, "%s: %d children released\n", info, released)
	}
	if err != nil {
		return err
	}
	return failure
}
