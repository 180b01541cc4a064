package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

var (
	leases = kind.Info{Group: "coordination.k8s.io", Version: "v1", Plural: "leases", Kind: "Lease", Singular: "lease", Namespaced: true, Preferred: true}
	quiet  = slog.New(slog.DiscardHandler)
)

// read reads the lease.
func (e *Elector) read(ctx context.Context) error {
	b, err := e.client.Get(ctx, kube.Target{Info: leases, Namespace: e.Namespace, Name: e.Name})
	if apierrors.IsNotFound(err) {
		e.seen = e.seen.vanished()
		return nil
	}
	if err != nil {
		return err
	}
	return e.take(b)
}

// take records the state of the lease from a response.
func (e *Elector) take(b *object.Body) error {
	r, err := parse(b)
	if err != nil {
		return err
	}
	e.seen = e.seen.look(r, b.ResourceVersion, time.Now())
	if former := e.holder.Swap(&r.holder); (former == nil || *former != r.holder) && r.holder != "" && r.holder != e.Identity {
		e.Log.Info("Another replica leads; this one waits.", "holder", r.holder)
	}
	return nil
}

// write stores a record in the lease if the lease has not changed since it was read. It
// creates the lease if there was none.
func (e *Elector) write(ctx context.Context, r record) error {
	l := coordinationv1.Lease{
		TypeMeta:   metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name, ResourceVersion: e.seen.version},
		Spec:       r.spec(),
	}
	raw, err := json.Marshal(l)
	if err != nil {
		return err
	}
	target := kube.Target{Info: leases, Namespace: e.Namespace}
	var b *object.Body
	if e.seen.version == "" {
		b, err = e.client.Create(ctx, target, raw)
	} else {
		target.Name = e.Name
		b, err = e.client.Patch(ctx, target, types.MergePatchType, raw)
	}
	if err != nil {
		var unknown *kube.UnknownOutcomeError
		e.unsure = e.unsure || errors.As(err, &unknown)
		return err
	}
	e.unsure = false // no earlier write can take effect now
	return e.take(b)
}

// tell logs each kind of failure once until a success.
func (e *Elector) tell(ctx context.Context, err error) {
	status, refused := kube.Refused(err)
	kind := fmt.Sprint(status.Code, status.Reason)
	var unknown *kube.UnknownOutcomeError
	switch {
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
		return // another replica was faster
	case errors.As(err, &unknown):
		kind = "unknown"
	case !refused && ctx.Err() != nil:
		kind = "late"
	}
	if !e.told.First(kind) {
		return
	}
	attrs := []any{"error", err}
	switch {
	case apierrors.IsForbidden(err):
		attrs = append(attrs, "needed", fmt.Sprintf("a Role in the namespace %s with the verbs get, list, watch, create and patch for leases in the group coordination.k8s.io", e.Namespace))
	case apierrors.IsNotFound(err):
		attrs = append(attrs, "needed", fmt.Sprintf("the namespace %s must exist", e.Namespace))
	}
	e.Log.Warn("Cannot acquire or renew the lease; retrying.", attrs...)
}
