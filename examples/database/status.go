package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf"
	"gopf.dev/gopf/client"
)

// report derives the status of a database from its StatefulSet. The operator writes it
// after the children are applied, together with the condition Ready.
func report(ctx context.Context, r *gopf.Reconciliation[*Database], set *gopf.Child[*appsv1.StatefulSet]) error {
	db, readyReplicas := r.Object, set.Live().Status.ReadyReplicas
	s := DatabaseStatus{
		State: stateOf(db, readyReplicas), Engine: db.Spec.Engine, Version: db.Spec.Version,
		Endpoint: fmt.Sprintf("%s.%s.svc.cluster.local:%d", childName(db), db.Namespace, engines[db.Spec.Engine].port),
		Replicas: db.Spec.Replicas, ReadyReplicas: readyReplicas, Backups: db.Spec.BackupEnabled || db.Status.Backups,
	}
	var err error
	if s.PendingAction, err = pendingAction(ctx, r, set.Live()); err != nil {
		return err
	}
	if r.Retry > 0 { // the children could not be applied after the last call
		s.State, s.Error = failed, "unknown"
		if c := meta.FindStatusCondition(db.Status.Conditions, "Ready"); c != nil {
			s.Error = c.Message
		}
		if r.Retry == 1 {
			r.Event(gopf.Warning, "ProvisionFailed", "%s", s.Error)
		}
		r.RequeueAfter(0) // if they can be applied now, the next call reports that
	}
	if s.State != db.Status.State && db.Status.State != "" {
		r.Event(gopf.Normal, s.State, "%d of %d replicas are ready", readyReplicas, db.Spec.Replicas)
	}
	r.Patch.Edit(func(db *Database) {
		s.Conditions = db.Status.Conditions
		db.Status = s
	})
	counts := fmt.Sprintf("%d of %d replicas are ready", readyReplicas, db.Spec.Replicas)
	if readyReplicas > 0 {
		r.SetCondition("Available", true, "DatabaseAvailable", "Database accepting connections")
	} else {
		r.SetCondition("Available", false, s.State, counts)
	}
	return nil
}

// stateOf returns the state for a number of ready replicas. A database is degraded only
// after it had a ready replica.
func stateOf(db *Database, readyReplicas int32) string {
	started := db.Status.State == ready || db.Status.State == degraded
	switch {
	case readyReplicas == db.Spec.Replicas:
		return ready
	case readyReplicas > 0 || started:
		return degraded
	default:
		return provisioning
	}
}

// dataVolumes returns the names of the PVCs that the StatefulSet creates.
func dataVolumes(db *Database) (all []types.NamespacedName) {
	for i := range db.Spec.Replicas {
		all = append(all, types.NamespacedName{Name: fmt.Sprintf("%s-%s-%d", dataVolume, childName(db), i)})
	}
	return all
}

// pendingAction returns the manual step that a change of the storage size requires, or
// "". Kubernetes does not resize the PVCs of a StatefulSet when its template changes.
func pendingAction(ctx context.Context, r *gopf.Reconciliation[*Database], set *appsv1.StatefulSet) (string, error) {
	wanted := resource.MustParse(r.Object.Spec.Storage)
	if size := templateSize(set); size.IsZero() || size.Cmp(wanted) == 0 {
		return "", nil
	}
	pending := "Resize storage to " + r.Object.Spec.Storage
	for _, volume := range dataVolumes(r.Object) {
		claim, err := client.Get[*corev1.PersistentVolumeClaim](ctx, r.API, volume.Name)
		switch {
		case apierrors.IsNotFound(err):
			return pending, nil
		case err != nil:
			return "", err
		case claim.Spec.Resources.Requests.Storage().Cmp(wanted) != 0:
			return pending, nil
		}
	}
	return "", nil
}

func templateSize(set *appsv1.StatefulSet) resource.Quantity {
	for _, template := range set.Spec.VolumeClaimTemplates {
		if template.Name == dataVolume {
			return template.Spec.Resources.Requests[corev1.ResourceStorage]
		}
	}
	return resource.Quantity{}
}
