package e2e

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/test/e2e/kit"
)

// merge changes an object by a merge patch.
func (o objects) merge(name, patch string) { o.patch(name, patch) }

// mergeStatus changes its status: tests play the parts of nodes and controllers.
func (o objects) mergeStatus(name, patch string) { o.patch(name, patch, "status") }

func (o objects) patch(name, patch string, subresources ...string) {
	o.t.Helper()
	if err := o.tryMerge(name, patch, subresources...); err != nil {
		o.t.Fatalf("patch %s: %v", name, err)
	}
}

// tryMerge is for patches that may be refused.
func (o objects) tryMerge(name, patch string, subresources ...string) error {
	_, err := o.client().Patch(o.ctx(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	return err
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

// awaitCollected waits until the garbage collector has deleted an object, for longer
// than anything else: it looks for new kinds every half a minute only, and children
// of objects whose kind it does not know stay for as long.
func (o objects) awaitCollected(name string) {
	o.t.Helper()
	for deadline := time.Now().Add(2 * kit.Patience); o.get(name) != nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			o.t.Fatalf("%s %s is not collected", o.kind, name)
		}
	}
}
