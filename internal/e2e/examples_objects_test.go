package e2e

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// merge changes an object by a merge patch.
func (o objects) merge(name, patch string) { o.patch(name, patch) }

// mergeStatus changes its status: tests play the parts of nodes and controllers.
func (o objects) mergeStatus(name, patch string) { o.patch(name, patch, "status") }

func (o objects) patch(name, patch string, subresources ...string) {
	o.t.Helper()
	_, err := o.client().Patch(o.ctx(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	if err != nil {
		o.t.Fatalf("patch %s: %v", name, err)
	}
}

// list are all objects, but those that are being deleted.
func (o objects) list() (found []unstructured.Unstructured) {
	o.t.Helper()
	all, err := o.client().List(o.ctx(), metav1.ListOptions{})
	if err != nil {
		o.t.Fatalf("list: %v", err)
	}
	for _, object := range all.Items {
		if object.GetDeletionTimestamp() == nil {
			found = append(found, object)
		}
	}
	return found
}
