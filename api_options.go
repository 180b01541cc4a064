package gopf

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf/kind"
)

// callSpec has the options of one call of a [Client].
type callSpec struct {
	of          string // the resource
	namespace   string // "" means the default
	everywhere  bool
	labels      string
	fields      string
	subresource string
	force       bool
	manager     string
	propagation metav1.DeletionPropagation
	unchanged   bool
}

type (
	// ListOption is an option of [Client.List], [List] and [Each].
	ListOption interface{ list(*callSpec) }
	// ApplyOption is an option of [Client.Apply].
	ApplyOption interface{ apply(*callSpec) }
	// MergeOption is an option of [Client.Merge].
	MergeOption interface{ merge(*callSpec) }
	// DeleteOption is an option of [Client.Delete].
	DeleteOption interface{ delete(*callSpec) }
)

// ObjectOption is an option of all calls of a [Client].
type ObjectOption func(*callSpec)

func (o ObjectOption) list(s *callSpec)   { o(s) }
func (o ObjectOption) apply(s *callSpec)  { o(s) }
func (o ObjectOption) merge(s *callSpec)  { o(s) }
func (o ObjectOption) delete(s *callSpec) { o(s) }

// Of sets the resource of this call, with a name as in [For]: "v1/pods". Use it for
// objects whose Go type and TypeMeta do not identify the resource.
func Of(name string) ObjectOption { return func(s *callSpec) { s.of = name } }

// InNamespace sets the namespace of this call. It overrides the namespace of the
// object. Default: the namespace of the object, or else that of the handled object.
func InNamespace(name string) ObjectOption { return func(s *callSpec) { s.namespace = name } }

type listOption func(*callSpec)

func (o listOption) list(s *callSpec) { o(s) }

// AllNamespaces lists the objects of all namespaces.
func AllNamespaces() ListOption { return listOption(func(s *callSpec) { s.everywhere = true }) }

// WithLabels lists only objects that match the label selector, in the syntax of
// kubectl: "tier=prod,env!=test".
func WithLabels(selector string) ListOption {
	return listOption(func(s *callSpec) { s.labels = selector })
}

// WithFields lists only objects that match the field selector, as in
// "spec.nodeName=node-1". API servers support few fields: metadata.name and
// metadata.namespace for all resources, and some more for built-in ones.
func WithFields(selector string) ListOption {
	return listOption(func(s *callSpec) { s.fields = selector })
}

type applyOption func(*callSpec)

func (o applyOption) apply(s *callSpec) { o(s) }

// Force takes over fields that other field managers own, instead of returning a
// conflict.
func Force() ApplyOption { return applyOption(func(s *callSpec) { s.force = true }) }

// FieldManager sets the field manager of this call. Use it if parts of the operator
// apply different fields of the same object.
func FieldManager(name string) ApplyOption {
	return applyOption(func(s *callSpec) { s.manager = name })
}

// WriteOption is an option of [Client.Apply] and [Client.Merge].
type WriteOption func(*callSpec)

func (o WriteOption) apply(s *callSpec) { o(s) }
func (o WriteOption) merge(s *callSpec) { o(s) }

// Status writes only the status subresource; other writes ignore the status of
// resources that have one. The object or patch has the fields under "status", as usual.
// If the resource has no status subresource, the object itself is written.
func Status() WriteOption { return func(s *callSpec) { s.subresource = statusEndpoint } }

type mergeOption func(*callSpec)

func (o mergeOption) merge(s *callSpec) { o(s) }

// Scale writes the scale subresource: the patch sets "spec.replicas". It works for all
// resources that can be scaled, and needs only the permission for their scale. The
// passed object is not updated.
func Scale() MergeOption { return mergeOption(func(s *callSpec) { s.subresource = scaleEndpoint }) }

const (
	statusEndpoint = "status"
	scaleEndpoint  = "scale"
)

type deleteOption func(*callSpec)

func (o deleteOption) delete(s *callSpec) { o(s) }

// Propagation sets the deletion propagation for the children of the object: foreground,
// background or orphan. Default: that of the resource.
func Propagation(p metav1.DeletionPropagation) DeleteOption {
	return deleteOption(func(s *callSpec) { s.propagation = p })
}

// IfUnchanged deletes the object only if its resource version is that of obj. Otherwise
// Delete returns a conflict.
func IfUnchanged() DeleteOption { return deleteOption(func(s *callSpec) { s.unchanged = true }) }

// selector returns the resource of the option [Of]. ok is false if it is not set.
func (s *callSpec) selector() (of kind.Selector, ok bool, err error) {
	if s.of == "" {
		return of, false, nil
	}
	of, err = kind.Parse(s.of)
	return of, true, err
}
