package client

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Options has the effect of all options of one call. Implementations of [Client], for
// example in tests, pass it to each option:
//
//	var o client.Options
//	for _, opt := range opts {
//		opt.ApplyToList(&o)
//	}
type Options struct {
	Resource      string // the resource; "" means that of the object
	Namespace     string // "" means that of the object, or else of the handled object
	AllNamespaces bool
	LabelSelector string
	FieldSelector string
	Subresource   string // "status" or "scale"; "" means the object itself
	Force         bool
	FieldManager  string // "" means the operator's
	Propagation   metav1.DeletionPropagation
	IfUnchanged   bool
	Owner         Object // nil means that no owner reference is added
	Keep          bool   // the caller of [Client.List] keeps all objects; set by [List]
}

type (
	// ListOption is an option of [Client.List], [List] and [Each].
	ListOption interface{ ApplyToList(*Options) }
	// CreateOption is an option of [Client.Create] and [CreateIfAbsent].
	CreateOption interface{ ApplyToCreate(*Options) }
	// ApplyOption is an option of [Client.Apply].
	ApplyOption interface{ ApplyToApply(*Options) }
	// MergeOption is an option of [Client.Merge] and [Edit].
	MergeOption interface{ ApplyToMerge(*Options) }
	// DeleteOption is an option of [Client.Delete].
	DeleteOption interface{ ApplyToDelete(*Options) }
)

// CallOption is an option of all calls of a [Client].
type CallOption func(*Options)

// ApplyToList implements [ListOption].
func (o CallOption) ApplyToList(s *Options) { o(s) }

// ApplyToCreate implements [CreateOption].
func (o CallOption) ApplyToCreate(s *Options) { o(s) }

// ApplyToApply implements [ApplyOption].
func (o CallOption) ApplyToApply(s *Options) { o(s) }

// ApplyToMerge implements [MergeOption].
func (o CallOption) ApplyToMerge(s *Options) { o(s) }

// ApplyToDelete implements [DeleteOption].
func (o CallOption) ApplyToDelete(s *Options) { o(s) }

// Of sets the resource of this call, with a name as in gopf.For: "v1/pods". Use it for
// objects whose Go type and TypeMeta do not identify the resource.
func Of(name string) CallOption { return func(o *Options) { o.Resource = name } }

// InNamespace sets the namespace of this call. It overrides the namespace of the
// object. Default: the namespace of the object, or else that of the handled object.
func InNamespace(name string) CallOption { return func(o *Options) { o.Namespace = name } }

type listOption func(*Options)

func (o listOption) ApplyToList(s *Options) { o(s) }

// AllNamespaces lists the objects of all namespaces.
func AllNamespaces() ListOption { return listOption(func(o *Options) { o.AllNamespaces = true }) }

// LabelSelector lists only objects that match the label selector, in the syntax of
// kubectl: "tier=prod,env!=test".
func LabelSelector(selector string) ListOption {
	return listOption(func(o *Options) { o.LabelSelector = selector })
}

// MatchLabels lists only objects that have all these labels. Without labels, it lists all
// objects.
func MatchLabels(required map[string]string) ListOption {
	return LabelSelector(labels.Set(required).AsSelectorPreValidated().String())
}

// FieldSelector lists only objects that match the field selector, as in
// "spec.nodeName=node-1". API servers support few fields: metadata.name and
// metadata.namespace for all resources, and some more for built-in ones.
func FieldSelector(selector string) ListOption {
	return listOption(func(o *Options) { o.FieldSelector = selector })
}

// OwnerOption is an option of [Client.Create], [CreateIfAbsent] and [Client.Apply].
type OwnerOption func(*Options)

// ApplyToCreate implements [CreateOption].
func (o OwnerOption) ApplyToCreate(s *Options) { o(s) }

// ApplyToApply implements [ApplyOption].
func (o OwnerOption) ApplyToApply(s *Options) { o(s) }

// OwnedBy adds an owner reference to the object: Kubernetes deletes it with its owner.
// gopf.Subject.Adopt adds the same reference, with the controller flag. The owner must have
// a UID: pass an object that was read or created.
//
//	err := c.API.Apply(ctx, deployment, client.OwnedBy(c.Object))
//
// A namespaced owner cannot own cluster-scoped objects, nor objects in other namespaces:
// the call then returns a hierarchy.OutsideError and writes nothing. Calls of Apply
// without this option remove the reference.
func OwnedBy(owner Object) OwnerOption { return func(o *Options) { o.Owner = owner } }

type applyOption func(*Options)

func (o applyOption) ApplyToApply(s *Options) { o(s) }

// Force takes over fields that other field managers own, instead of returning a
// conflict.
func Force() ApplyOption { return applyOption(func(o *Options) { o.Force = true }) }

// FieldManager sets the field manager of this call. Use it if parts of the operator
// apply different fields of the same object.
func FieldManager(name string) ApplyOption {
	return applyOption(func(o *Options) { o.FieldManager = name })
}

// WriteOption is an option of [Client.Apply] and [Client.Merge].
type WriteOption func(*Options)

// ApplyToApply implements [ApplyOption].
func (w WriteOption) ApplyToApply(o *Options) { w(o) }

// ApplyToMerge implements [MergeOption].
func (w WriteOption) ApplyToMerge(o *Options) { w(o) }

// StatusSubresource writes only the status subresource; other writes ignore the status
// of resources that have one. The object or patch has the fields under "status", as
// usual. If the resource has no status subresource, the object itself is written.
func StatusSubresource() WriteOption { return func(o *Options) { o.Subresource = "status" } }

type mergeOption func(*Options)

func (m mergeOption) ApplyToMerge(o *Options) { m(o) }

// ScaleSubresource writes the scale subresource: the patch sets "spec.replicas". It
// works for all resources that can be scaled, and needs only the permission for their
// scale. The passed object is not updated.
func ScaleSubresource() MergeOption {
	return mergeOption(func(o *Options) { o.Subresource = "scale" })
}

type deleteOption func(*Options)

func (d deleteOption) ApplyToDelete(o *Options) { d(o) }

// Propagation sets the deletion propagation for the children of the object: foreground,
// background or orphan. Default: that of the resource.
func Propagation(p metav1.DeletionPropagation) DeleteOption {
	return deleteOption(func(o *Options) { o.Propagation = p })
}

// IfUnchanged deletes the object only if its resource version is that of obj. Otherwise
// Delete returns a conflict.
func IfUnchanged() DeleteOption { return deleteOption(func(o *Options) { o.IfUnchanged = true }) }
