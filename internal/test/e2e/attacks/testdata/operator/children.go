package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf"
	"gopf.dev/gopf/client"
)

// own lets owners have pieces: one, or spec.count, each with a copy of spec.value. Those with
// spec.source have a part with the value of that target instead. The operator reviews the parts,
// which it writes itself.
func own(op *gopf.Operator) {
	gopf.RegisterType[*source](op, group+"targets")
	op.Resource(group+"owners").Reconcile("pieces", declare,
		gopf.Owns[gopf.Unstructured](gopf.OfResource(group+"pieces")), gopf.Owns[*part](gopf.OfResource(group+"parts")), gopf.Watches[*source](sources))
	gopf.For[*part](op, group+"parts").Validate("lookup", lookup)
}

type (
	// source is a target that owners refer to.
	source struct{ valued }
	// part is a child that the operator reviews.
	part struct{ valued }

	valued struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			Value string `json:"value"`
		} `json:"spec"`
	}
)

func sources(owner gopf.Unstructured) []types.NamespacedName {
	if name := sourceOf(owner); name != "" {
		return []types.NamespacedName{{Name: name}}
	}
	return nil
}

func sourceOf(owner gopf.Unstructured) string {
	name, _, _ := unstructured.NestedString(owner.Object, "spec", "source")
	return name
}

func declare(ctx context.Context, r *gopf.Reconciliation[gopf.Unstructured]) error {
	count, _ := gopf.ValueAt[int](r, "spec.count")
	value, _ := gopf.ValueAt[string](r, "spec.value")
	if name := sourceOf(r.Object); name != "" {
		from, err := client.Get[*source](ctx, r.API, name)
		if err != nil {
			return err
		}
		wanted := &part{}
		wanted.Name, wanted.Spec.Value = r.Object.GetName(), from.Spec.Value
		gopf.Want(r, wanted)
		return nil
	}
	size := 0
	for i := range max(count, 1) {
		piece := gopf.Want(r, map[string]any{
			"apiVersion": "attacks.gopf.dev/v1", "kind": "Piece",
			"metadata": map[string]any{"name": fmt.Sprintf("%s-%d", r.Object.GetName(), i)},
			"spec":     map[string]any{"value": value},
		})
		size += len(piece.Live())
	}
	r.Log.Debug("declared", "pieces", count, "size", size)
	return nil
}

// lookup sends a request for each part.
func lookup(ctx context.Context, r *gopf.Review[*part]) error {
	_, err := client.Get[*corev1.ConfigMap](ctx, r.API, "kube-root-ca.crt")
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
