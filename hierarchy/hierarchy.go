package hierarchy

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Adopt makes children belong to the owner: it appends an owner reference, and
// gives them a name, the namespace and the labels of the owner where they have
// none. With an error, nothing is changed in the child that it is about and in
// those after it.
//
// A namespaced owner cannot have children outside of its namespace: see
// [OutsideError].
func Adopt(children, owner any, opts ...Option) error {
	parent, err := identify(owner)
	if err != nil {
		return err
	}
	if parent.Name == "" {
		return errors.New("adopt: the owner has no name to name children after")
	}
	o := chosen(opts)
	return each(children, func(c child) error {
		if !o.forced {
			if err := parent.mayOwn(c); err != nil {
				return err
			}
		}
		if err := label(c, parent.labels, o); err != nil { // the only step that can fail
			return err
		}
		refer(c, parent.reference(o))
		rename(c, parent.Name, o)
		move(c, parent.namespace, o)
		return nil
	})
}

// Label gives labels to children.
func Label(children any, labels map[string]string, opts ...Option) error {
	o := chosen(opts)
	return each(children, func(c child) error { return label(c, labels, o) })
}

// HarmonizeNaming names children that have neither a name nor a prefix for one:
// with a name of their own that begins like the given one, or, if [Strict], with
// exactly that.
func HarmonizeNaming(children any, name string, opts ...Option) error {
	if name == "" {
		return errors.New("harmonize the naming: the name is empty")
	}
	o := chosen(opts)
	return each(children, func(c child) error { rename(c, name, o); return nil })
}

// AdjustNamespace puts children that have no namespace into the given one; if
// [Forced], also those that have one. "" is none.
func AdjustNamespace(children any, namespace string, opts ...Option) error {
	o := chosen(opts)
	return each(children, func(c child) error { move(c, namespace, o); return nil })
}

// AppendOwnerReference makes children be deleted with their owner. Those that
// refer to it already are left as they are.
func AppendOwnerReference(children, owner any, opts ...Option) error {
	parent, err := identify(owner)
	if err != nil {
		return err
	}
	o := chosen(opts)
	return each(children, func(c child) error {
		if err := parent.mayOwn(c); err != nil {
			return err
		}
		refer(c, parent.reference(o))
		return nil
	})
}

// RemoveOwnerReference undoes what [AppendOwnerReference] did.
func RemoveOwnerReference(children, owner any) error {
	parent, err := identify(owner)
	if err != nil {
		return err
	}
	return each(children, func(c child) error { c.disown(parent.UID); return nil })
}

// OwnerReference is what children have in their metadata of an owner.
func OwnerReference(owner any, opts ...Option) (metav1.OwnerReference, error) {
	parent, err := identify(owner)
	if err != nil {
		return metav1.OwnerReference{}, err
	}
	return parent.reference(chosen(opts)), nil
}

// OutsideError tells that an object cannot own another one, because that is not
// in the same namespace.
type OutsideError struct {
	Owner     string // its kind and name
	Namespace string // the owner's
	Child     string // the namespace of the child; "" if it is cluster-scoped
}

func (e *OutsideError) Error() string {
	child := fmt.Sprintf("one in the namespace %q", e.Child)
	if e.Child == "" {
		child = "a cluster-scoped one"
	}
	return fmt.Sprintf("%s in the namespace %q cannot own %s: owners are looked for in the namespace of the child, "+
		"so Kubernetes would take the owner for deleted and delete the child", e.Owner, e.Namespace, child)
}

// mayOwn refuses children in other namespaces. A child without a namespace will
// get one.
func (p parent) mayOwn(c child) error {
	if other := c.namespace(); p.namespace != "" && other != "" && other != p.namespace {
		return &OutsideError{Owner: p.Kind + " " + p.Name, Namespace: p.namespace, Child: other}
	}
	return nil
}

// label begins with the parts: only they can be other than expected.
func label(c child, labels map[string]string, o options) error {
	if err := c.labelNested(o.nested, labels, o.forced); err != nil {
		return fmt.Errorf("label nested metadata: %w", err)
	}
	c.label(labels, o.forced)
	return nil
}

func rename(c child, name string, o options) {
	switch {
	case c.isNamed() && !o.forced:
	case o.strict:
		c.name(name, "")
	default:
		c.name("", name+"-")
	}
}

func move(c child, namespace string, o options) {
	if o.forced || !c.isPlaced() {
		c.place(namespace)
	}
}

func refer(c child, ref metav1.OwnerReference) {
	if !c.refersTo(ref.UID) {
		c.own(ref)
	}
}
