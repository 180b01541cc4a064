package main

import (
	"context"
	"fmt"

	"gopf.dev/gopf"
)

// own lets owners have pieces: one, or spec.count, each with a copy of spec.value.
func own(op *gopf.Operator) {
	op.Resource(group+"owners").Reconcile("pieces", declare, gopf.Owns[gopf.Unstructured](gopf.OfResource(group+"pieces")))
}

func declare(_ context.Context, r *gopf.Reconciliation[gopf.Unstructured]) error {
	count, _ := gopf.ValueAt[int](r, "spec.count")
	value, _ := gopf.ValueAt[string](r, "spec.value")
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
