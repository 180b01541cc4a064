package hierarchy

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Adopt makes objects children of the owner. It appends an owner reference, and sets the
// name, the namespace and the labels from the owner where the child has none. On error, the
// child in question and those after it are not changed.
//
// Owner and child must be in the same namespace, or the owner must be cluster-scoped;
// otherwise Adopt returns an [OutsideError].
func Adopt(children, owner any, opts ...Option) error {
	parent, err := identify(owner)
	if err != nil {
		return err
	}
	if parent.Name == "" {
		return errors.New("adopt: the owner has no name; set it before adopting children")
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

// Label sets labels on children. Existing labels are kept unless [Forced] is set.
func Label(children any, labels map[string]string, opts ...Option) error {
	o := chosen(opts)
	return each(children, func(c child) error { return label(c, labels, o) })
}

// HarmonizeNaming sets the name of children that have neither a name nor a generateName: to
// a generateName that begins with the given name or, with [Strict], to exactly that name.
func HarmonizeNaming(children any, name string, opts ...Option) error {
	if name == "" {
		return errors.New("harmonize the naming: the name is empty")
	}
	o := chosen(opts)
	return each(children, func(c child) error { rename(c, name, o); return nil })
}

// AdjustNamespace sets the namespace of children that have none. With [Forced], it replaces
// existing namespaces. An empty namespace removes it.
func AdjustNamespace(children any, namespace string, opts ...Option) error {
	o := chosen(opts)
	return each(children, func(c child) error { move(c, namespace, o); return nil })
}

// AppendOwnerReference adds an owner reference to children, so Kubernetes deletes them with
// the owner. Children that already refer to the owner are not changed.
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

// RemoveOwnerReference removes the owner reference that [AppendOwnerReference] added.
func RemoveOwnerReference(children, owner any) error {
	parent, err := identify(owner)
	if err != nil {
		return err
	}
	return each(children, func(c child) error { c.disown(parent.UID); return nil })
}

// OwnerReference returns the owner reference that children of the owner have.
func OwnerReference(owner any, opts ...Option) (metav1.OwnerReference, error) {
	parent, err := identify(owner)
	if err != nil {
		return metav1.OwnerReference{}, err
	}
	return parent.reference(chosen(opts)), nil
}

// OutsideError is returned if an object cannot own another one because they are not in the
// same namespace.
type OutsideError struct {
	Owner     string // kind and name of the owner
	Namespace string // namespace of the owner
	Child     string // namespace of the child; empty if it is cluster-scoped
}

func (e *OutsideError) Error() string {
	child := fmt.Sprintf("one in the namespace %q", e.Child)
	if e.Child == "" {
		child = "a cluster-scoped one"
	}
	return fmt.Sprintf("%s in the namespace %q cannot own %s: owners are looked for in the namespace of the child, "+
		"so Kubernetes would take the owner for deleted and delete the child", e.Owner, e.Namespace, child)
}

// mayOwn returns an error for children in other namespaces. A child without a namespace is
// accepted, because it gets one later.
func (p parent) mayOwn(c child) error {
	if other := c.namespace(); p.namespace != "" && other != "" && other != p.namespace {
		return &OutsideError{Owner: p.Kind + " " + p.Name, Namespace: p.namespace, Child: other}
	}
	return nil
}

// label starts with the nested parts, because only they can be of an unexpected type.
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
