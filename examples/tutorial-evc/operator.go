package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/hierarchy"
)

// storageClass is the storage class of all PVCs.
const storageClass = "standard"

func newOperator() *gopf.Operator {
	op := gopf.New(gopf.Identity("evc-operator.kopf.dev"))
	evcs := gopf.For[*EphemeralVolumeClaim](op, resourceName)
	evcs.OnCreate("create", create)
	evcs.Field("spec.size").OnUpdate("resize", resize)
	evcs.Field("metadata.labels").OnUpdate("relabel", relabel)
	return op
}

func create(ctx context.Context, c *gopf.Change[*EphemeralVolumeClaim]) error {
	size, err := resource.ParseQuantity(c.Object.Spec.Size)
	if err != nil {
		return gopf.Permanent(fmt.Errorf("spec.size %q: %w", c.Object.Spec.Size, err))
	}
	pvc := &corev1.PersistentVolumeClaim{}
	pvc.Spec.StorageClassName = new(storageClass)
	pvc.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	pvc.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: size}
	if err := c.Adopt(pvc, hierarchy.Strict()); err != nil {
		return gopf.Permanent(err)
	}
	if err := c.API.Apply(ctx, pvc); err != nil {
		return fmt.Errorf("apply the PVC: %w", err)
	}
	c.Log.Info("Applied the PVC.", "pvc", pvc.Name, "size", size.String())
	c.Patch.MergeStatus(EphemeralVolumeClaimStatus{Claim: pvc.Name})
	return nil
}

func resize(ctx context.Context, c *gopf.Change[*EphemeralVolumeClaim]) error {
	size, err := resource.ParseQuantity(c.Object.Spec.Size)
	if err != nil {
		return gopf.Permanent(fmt.Errorf("spec.size %q: %w", c.Object.Spec.Size, err))
	}
	patch := map[string]any{"spec": map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": size}}}}
	if err := c.API.Merge(ctx, pvcOf(c.Object), patch); err != nil {
		return fmt.Errorf("resize the PVC: %w", err)
	}
	c.Log.Info("Resized the PVC.", "from", c.Old.Spec.Size, "to", c.Object.Spec.Size)
	return nil
}

func relabel(ctx context.Context, c *gopf.Change[*EphemeralVolumeClaim]) error {
	labels := map[string]any{}
	for key := range c.Old.Labels {
		labels[key] = nil // null removes the label, unless it is set again below
	}
	for key, value := range c.Object.Labels {
		labels[key] = value
	}
	patch := map[string]any{"metadata": map[string]any{"labels": labels}}
	if err := c.API.Merge(ctx, pvcOf(c.Object), patch); err != nil {
		return fmt.Errorf("relabel the PVC: %w", err)
	}
	c.Log.Info("Updated the labels of the PVC.", "diff", c.Diff.String())
	return nil
}

// pvcOf returns the PVC of an EVC, with only its namespace and name set. Both have the
// same name.
func pvcOf(evc *EphemeralVolumeClaim) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: evc.Namespace, Name: evc.Name}}
}
