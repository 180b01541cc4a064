package gopf

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf/kind"
)

// callSpec is what the options of a call say.
type callSpec struct {
	of          string // the resource
	namespace   string // "" if it is not said
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
	// ListOption narrows a list.
	ListOption interface{ list(*callSpec) }
	// ApplyOption tunes [Client.Apply].
	ApplyOption interface{ apply(*callSpec) }
	// MergeOption tunes [Client.Merge].
	MergeOption interface{ merge(*callSpec) }
	// DeleteOption tunes [Client.Delete].
	DeleteOption interface{ delete(*callSpec) }
)

// ObjectOption tells which objects are meant. It suits everything a [Client]
// does.
type ObjectOption func(*callSpec)

func (o ObjectOption) list(s *callSpec)   { o(s) }
func (o ObjectOption) apply(s *callSpec)  { o(s) }
func (o ObjectOption) merge(s *callSpec)  { o(s) }
func (o ObjectOption) delete(s *callSpec) { o(s) }

// Of names the resource for this call, as in [For]: "v1/pods". It is for objects
// whose type and TypeMeta do not say what they are.
func Of(name string) ObjectOption { return func(s *callSpec) { s.of = name } }

// InNamespace is where the objects are, whatever namespace they have themselves.
func InNamespace(name string) ObjectOption { return func(s *callSpec) { s.namespace = name } }

type listOption func(*callSpec)

func (o listOption) list(s *callSpec) { o(s) }

// AllNamespaces lists objects wherever they are.
func AllNamespaces() ListOption { return listOption(func(s *callSpec) { s.everywhere = true }) }

// WithLabels lists only objects whose labels match, in the notation of kubectl:
// "tier=prod,env!=test".
func WithLabels(selector string) ListOption {
	return listOption(func(s *callSpec) { s.labels = selector })
}

// WithFields lists only objects whose fields match: "spec.nodeName=node-1". The
// server knows few fields; metadata.name and metadata.namespace for all kinds.
func WithFields(selector string) ListOption {
	return listOption(func(s *callSpec) { s.fields = selector })
}

type applyOption func(*callSpec)

func (o applyOption) apply(s *callSpec) { o(s) }

// Force takes over the fields that others own.
func Force() ApplyOption { return applyOption(func(s *callSpec) { s.force = true }) }

// FieldManager is the owner of the fields, other than the operator as a whole:
// for parts of the operator that apply different fields of the same objects.
func FieldManager(name string) ApplyOption {
	return applyOption(func(s *callSpec) { s.manager = name })
}

// WriteOption suits [Client.Apply] and [Client.Merge].
type WriteOption func(*callSpec)

func (o WriteOption) apply(s *callSpec) { o(s) }
func (o WriteOption) merge(s *callSpec) { o(s) }

// Status changes the status of an object and nothing else; without it, most
// kinds leave the status alone. The object or patch has it under "status", as
// ever.
func Status() WriteOption { return func(s *callSpec) { s.subresource = statusEndpoint } }

type mergeOption func(*callSpec)

func (o mergeOption) merge(s *callSpec) { o(s) }

// Scale changes the number of replicas of any kind that can be scaled, for which
// the operator need not be allowed more: the patch is that of a Scale
// ("spec.replicas"). The object that is passed is not read.
func Scale() MergeOption { return mergeOption(func(s *callSpec) { s.subresource = scaleEndpoint }) }

const (
	statusEndpoint = "status"
	scaleEndpoint  = "scale"
)

type deleteOption func(*callSpec)

func (o deleteOption) delete(s *callSpec) { o(s) }

// Propagation says what becomes of the children of a deleted object: they go
// after it, before it, or are left. The default is that of the kind.
func Propagation(p metav1.DeletionPropagation) DeleteOption {
	return deleteOption(func(s *callSpec) { s.propagation = p })
}

// IfUnchanged deletes the object only in the version that obj has; else it is a
// conflict.
func IfUnchanged() DeleteOption { return deleteOption(func(s *callSpec) { s.unchanged = true }) }

// selector is the resource that the options name, if they do.
func (s *callSpec) selector() (of kind.Selector, ok bool, err error) {
	if s.of == "" {
		return of, false, nil
	}
	of, err = kind.Parse(s.of)
	return of, true, err
}
