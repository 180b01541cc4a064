package metacontroller

import (
	"context"
	"crypto/sha256"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"

	"gopf.dev/gopf/internal/jsonvalue"
)

// formerManager is the field manager of children that were created or updated by the
// dynamic apply of Metacontroller.
const formerManager = "metacontroller"

// appliedForm has the hash that the last server-side apply of a child sent, and the state
// that it received.
type appliedForm struct {
	hash       [sha256.Size]byte
	uid        types.UID
	generation int64
	version    string // if the kind has no generations
}

// formOf returns the state of a child after the apply of a form.
func formOf(hash [sha256.Size]byte, obj *unstructured.Unstructured) appliedForm {
	f := appliedForm{hash: hash, uid: obj.GetUID(), generation: obj.GetGeneration()}
	if f.generation == 0 {
		f.version = obj.GetResourceVersion()
	}
	return f
}

// Cleaned returns a desired child without the fields that belong to the API server.
func Cleaned(desired *unstructured.Unstructured) *unstructured.Unstructured {
	clean := desired.DeepCopy()
	for _, field := range kept {
		unstructured.RemoveNestedField(clean.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(clean.Object, "metadata", "annotations", LastApplied)
	delete(clean.Object, "status")
	return clean
}

// serverSide creates or updates a child by server-side apply. observed may be nil.
func (c *controller) serverSide(ctx context.Context, r resource, parent, observed, desired *unstructured.Unstructured) error {
	form := Cleaned(desired)
	own(parent, form)
	text, err := jsonvalue.Marshal(form.Object)
	if err != nil {
		return err
	}
	hash, name := sha256.Sum256(text), appliedName(r, desired)
	if observed != nil {
		method := c.children[r.key()].strategy.Method
		if observed.GetDeletionTimestamp() != nil || method == "" || method == OnDelete {
			return nil
		}
		c.mu.Lock()
		same := c.applied[name] == formOf(hash, observed)
		c.mu.Unlock()
		if same {
			return nil
		}
		if method == Recreate || method == RollingRecreate {
			tried, err := c.patch(ctx, r, form, text, metav1.DryRunAll)
			if err != nil {
				return err
			}
			if !sameContent(tried, observed) {
				return c.remove(ctx, r, observed)
			}
			c.remember(name, formOf(hash, observed))
			return nil
		}
		if err := c.takeOver(ctx, r, observed); err != nil {
			return err
		}
	}
	result, err := c.patch(ctx, r, form, text)
	if _, declared := c.children[r.key()]; declared && err == nil { // others are not watched, so they could not be forgotten
		c.remember(name, formOf(hash, result))
	}
	return err
}

// appliedName names a child of a resource, for the forms that were applied.
func appliedName(r resource, obj *unstructured.Unstructured) string {
	if !r.namespaced { // a desired one may have the namespace of its parent
		return r.gvr.String() + " " + obj.GetName()
	}
	return r.gvr.String() + " " + identity(obj)
}

// forget drops the form that was applied to a deleted child.
func (c *controller) forget(r resource, obj *unstructured.Unstructured) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.applied, appliedName(r, obj))
}

func (c *controller) remember(name string, form appliedForm) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.applied[name] = form
}

func (c *controller) patch(ctx context.Context, r resource, form *unstructured.Unstructured, text []byte, dry ...string) (*unstructured.Unstructured, error) {
	force := true
	return c.in(r, form.GetNamespace()).Patch(ctx, form.GetName(), types.ApplyPatchType, text, metav1.PatchOptions{
		FieldManager: c.env.fieldManager, Force: &force, DryRun: dry,
	})
}

// sameContent reports whether an apply would change nothing. The annotation of the dynamic
// apply does not count.
func sameContent(tried, observed *unstructured.Unstructured) bool {
	bare := func(o *unstructured.Unstructured) map[string]any {
		o = o.DeepCopy()
		for _, field := range []string{"resourceVersion", "generation", "managedFields"} {
			unstructured.RemoveNestedField(o.Object, "metadata", field)
		}
		unstructured.RemoveNestedField(o.Object, "metadata", "annotations", LastApplied)
		if len(o.GetAnnotations()) == 0 {
			unstructured.RemoveNestedField(o.Object, "metadata", "annotations")
		}
		return o.Object
	}
	return reflect.DeepEqual(bare(tried), bare(observed))
}

// takeOver gives the fields of the dynamic apply to the field manager of server-side apply,
// and removes the annotation of the dynamic apply.
func (c *controller) takeOver(ctx context.Context, r resource, observed *unstructured.Unstructured) error {
	if _, ok := observed.GetAnnotations()[LastApplied]; !ok {
		return nil
	}
	live, err := c.in(r, observed.GetNamespace()).Get(ctx, observed.GetName(), metav1.GetOptions{})
	if err != nil {
		return swallow(err)
	}
	if patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, sets.New(formerManager), c.env.fieldManager); err != nil {
		return err
	} else if patch != nil {
		if _, err := c.in(r, observed.GetNamespace()).Patch(ctx, observed.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	remove := []byte(`{"metadata":{"annotations":{"` + LastApplied + `":null}}}`)
	_, err = c.in(r, observed.GetNamespace()).Patch(ctx, observed.GetName(), types.MergePatchType, remove, metav1.PatchOptions{})
	return err
}
