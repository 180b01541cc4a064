// Package hierarchy makes objects children of other objects. It sets owner references, so
// Kubernetes deletes children with their owners, and it sets names, namespaces and labels
// like those of the owner.
//
// In handlers, the method Adopt of the handler's argument does all of this for the object
// being handled. Use this package for the single steps, or for other owners.
//
// Children are changed in place, before they are created. A child is
//
//   - a pointer to a struct that embeds metav1.ObjectMeta, such as *corev1.Pod,
//   - an *unstructured.Unstructured,
//   - decoded JSON or YAML: a map[string]any,
//   - a slice of these, or of such slices; nil means no children.
//
// An owner is one of the first three. Nothing in this package accesses a cluster.
package hierarchy

// Option changes how children are treated. Functions ignore options that do not apply to
// them.
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

// Forced replaces existing names, namespaces and labels of children. By default, only
// missing ones are set.
func Forced() Option { return func(o *options) { o.forced = true } }

// Strict gives a child the same name as its owner. By default, the child gets a
// generateName: the name of the owner and a random suffix.
func Strict() Option { return func(o *options) { o.strict = true } }

// Nested also sets the labels on parts of children with their own metadata, such as
// "spec.template" of Deployments and Jobs. Children without such a part are not changed.
func Nested(paths ...string) Option {
	return func(o *options) { o.nested = append(o.nested, paths...) }
}

// NotController adds the owner without making it the controller of the child. A child can
// have at most one controller.
func NotController() Option { return func(o *options) { o.notController = true } }

// NotBlocking sets blockOwnerDeletion to false: the owner can be deleted before the child,
// even by a foreground deletion.
func NotBlocking() Option { return func(o *options) { o.notBlocking = true } }

// OmitController leaves the flag "controller" out of the owner reference, instead
// of writing false as [NotController] does. To Kubernetes, both mean the same.
func OmitController() Option { return func(o *options) { o.noController = true } }

// OmitBlocking leaves the flag "blockOwnerDeletion" out of the owner reference,
// instead of writing false as [NotBlocking] does. To Kubernetes, both mean the same.
func OmitBlocking() Option { return func(o *options) { o.noBlocking = true } }
