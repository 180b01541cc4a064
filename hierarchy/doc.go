// Package hierarchy makes objects the children of others: with owner
// references, so that they are deleted together, and with names, namespaces
// and labels that show where they belong.
//
// In handlers, the method Adopt of what the handler is given does all of it at
// once for the object that is being handled; this package is for the single
// steps, and for other owners.
//
// Children are changed in place, before they are created. A child is
//
//   - a pointer to a struct that embeds metav1.ObjectMeta, such as *corev1.Pod,
//   - an *unstructured.Unstructured,
//   - decoded JSON or YAML: a map[string]any,
//   - a slice of these, or of such slices; nil is no child at all.
//
// An owner is one of the first three. Nothing here talks to a cluster.
package hierarchy

// Option changes how children are treated. Functions that have no use for an
// option ignore it.
type Option func(*options)

type options struct {
	forced, strict             bool
	notController, notBlocking bool
	noController, noBlocking   bool
	nested                     []string
}

func chosen(opts []Option) (o options) {
	for _, set := range opts {
		set(&o)
	}
	return o
}

// Forced replaces names, namespaces and labels that children have already. By
// default only those are set that are missing.
func Forced() Option { return func(o *options) { o.forced = true } }

// Strict names a child exactly like its owner. By default the name only begins
// like that, and ends at random.
func Strict() Option { return func(o *options) { o.strict = true } }

// Nested puts the labels also on parts of children that have metadata of their
// own, such as "spec.template" of deployments and jobs. Children that have no
// such part are left alone.
func Nested(paths ...string) Option {
	return func(o *options) { o.nested = append(o.nested, paths...) }
}

// NotController makes the owner one of several, rather than the one that
// controls the child. A child can have one controller at the most.
func NotController() Option { return func(o *options) { o.notController = true } }

// NotBlocking lets the owner vanish before the child does, also when it is
// deleted in the foreground.
func NotBlocking() Option { return func(o *options) { o.notBlocking = true } }

// OmitController leaves the flag "controller" out of the owner reference, instead
// of writing false as [NotController] does. To Kubernetes, both mean the same.
func OmitController() Option { return func(o *options) { o.noController = true } }

// OmitBlocking leaves the flag "blockOwnerDeletion" out of the owner reference,
// instead of writing false as [NotBlocking] does. To Kubernetes, both mean the same.
func OmitBlocking() Option { return func(o *options) { o.noBlocking = true } }
