package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"gopf.dev/gopf"
)

// storageClass is the storage class of all PVCs.
const storageClass = "standard"

func newOperator() *gopf.Operator {
	op := gopf.New(gopf.Identity("evc-operator.kopf.dev"))
	evcs := gopf.For[*EphemeralVolumeClaim](op, resourceName)
	evcs.Reconcile("claim", claim, gopf.Owns[*corev1.PersistentVolumeClaim]())
	evcs.Field("spec.size").OnUpdate("resized", resized)
	return op
}

// claim declares the PVC of an EVC. Both have the same name.
func claim(ctx context.Context, r *gopf.Reconciliation[*EphemeralVolumeClaim]) error {
	size, err := resource.ParseQuantity(r.Object.Spec.Size)
	if err != nil {
		return gopf.Permanent(fmt.Errorf("spec.size %q: %w", r.Object.Spec.Size, err))
	}
	pvc := &corev1.PersistentVolumeClaim{}
	pvc.Name = r.Object.Name
	pvc.Labels = r.Object.Labels
	pvc.Spec.StorageClassName = new(storageClass)
	pvc.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	pvc.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: size}
	gopf.Want(r, pvc)
	r.Patch.MergeStatus(EphemeralVolumeClaimStatus{Claim: pvc.Name})
	return nil
}

func resized(ctx context.Context, c *gopf.Change[*EphemeralVolumeClaim]) error {
	c.Event(gopf.Normal, "Resized", "The size changed from %s to %s.", c.Old.Spec.Size, c.Object.Spec.Size)
	return nil
}
