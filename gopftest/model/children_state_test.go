package model_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// stateKey is the field of the status that has the state, if it is there.
const stateKey = "model"

// parentDefinition returns the definition of the parents. Only with a schema that keeps the
// state, the operator has it in the status.
func parentDefinition(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	open := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "parents.model.gopf.dev"},
		"spec": map[string]any{
			"group": "model.gopf.dev", "scope": "Namespaced", "names": map[string]any{"plural": "parents", "singular": "parent", "kind": "Parent", "listKind": "ParentList"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"spec": open, "status": open}}},
			}},
		},
	}}
}

// checkPlace checks that the inventory of a parent is where the settings say, and nowhere
// else.
func (f *family) checkPlace(when string, parent *unstructured.Unstructured) {
	if len(f.kidsOf(parent)) == 0 {
		return // without children, there is no inventory
	}
	state, _, _ := unstructured.NestedMap(parent.Object, "status", stateKey)
	annotated := 0
	for key := range parent.GetAnnotations() {
		if strings.HasPrefix(key, owner+"/") {
			annotated++
		}
	}
	switch {
	case f.status && (len(state) == 0 || annotated > 0), !f.status && (len(state) > 0 || annotated == 0):
		f.wrong("%s: with the state in the status: %t, %s has the annotations %v and the status %v", when, f.status, parent.GetName(), parent.GetAnnotations(), parent.Object["status"])
	case f.status:
		f.inStatus.Add(1)
	default:
		f.inAnnotations.Add(1)
	}
}
