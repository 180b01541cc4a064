package gopf

import (
	"context"
	"iter"

	"k8s.io/client-go/rest"
)

// Client is how handlers reach the cluster, with the credentials of the
// operator: its requests are limited, retried, and made to wait for new
// credentials like those of the operator itself. With an election, writes are
// refused while another replica works.
//
// Objects are pointers to structs that embed metav1.ObjectMeta, or
// [Unstructured]. What kind they are is known of types that are named in [For]
// or [Kind] and of those of Kubernetes itself, in k8s.io/api; else it is said in
// their TypeMeta, or by [Of]. Objects of namespaced kinds that have no namespace
// are looked for and made in that of the object being handled; what the client
// fills in is in the object afterwards.
//
// The errors of the cluster are those that apimachinery knows: ask
// apierrors.IsNotFound and the like. Writes whose answers got lost are settled
// by reading; where this fails, it is an [UnknownOutcomeError].
//
// Tests can have a client of their own: embed the interface, and have the
// methods that are needed.
type Client interface {
	// Get reads the object with the namespace and the name that obj has, into
	// obj. All that was in obj before is replaced, also if the object has less
	// now. See also [Get].
	Get(ctx context.Context, obj Object, opts ...ObjectOption) error

	// List goes through the objects of the kind of obj, in the namespace of the
	// object being handled, or in all if it has none; each is a new one of the
	// type of obj. They are read page by page, as the loop goes on, which may take
	// its time: after some minutes the rest is newer than the beginning. An error
	// comes last. See also [List] and [Each].
	List(ctx context.Context, obj Object, opts ...ListOption) iter.Seq2[Object, error]

	// Create makes the object, and reads it as it is then. It is an error if there
	// is one of its name already.
	//
	// If the answer gets lost, the object is looked for. One that has all that was
	// asked for counts as made; whether in fact somebody else has made an equal one
	// at that moment cannot be told. A name for GenerateName is chosen here rather
	// than by the server, so that this works with it, too.
	Create(ctx context.Context, obj Object, opts ...ObjectOption) error

	// Apply makes the object have what is in obj, and makes it if there is none
	// (server-side apply): what is empty or missing in obj is not touched, unless
	// the operator has applied it before, which undoes it. So it should always be
	// called with all that the operator wants, and never with an object that was
	// read. Then obj is as the object is in the cluster.
	//
	// The operator owns the fields under its name: Settings.Posting.ReportingComponent
	// if that is set, else the name of the executable; see also [FieldManager].
	// Where others own a field and want something else, it is a conflict, unless
	// [Force] is given.
	Apply(ctx context.Context, obj Object, opts ...ApplyOption) error

	// Merge changes the object with the namespace and the name that obj has, by a
	// JSON merge patch: patch is a map, or anything else that JSON makes an object
	// of; null deletes. Then obj is as the object is in the cluster. A
	// metadata.resourceVersion in the patch makes it a conflict if the object has
	// another one.
	Merge(ctx context.Context, obj Object, patch any, opts ...MergeOption) error

	// Delete deletes the object with the namespace and the name that obj has; if
	// obj has a UID, only the very object. It is no error if there is none. The
	// object may be there for a while, if there are finalizers.
	Delete(ctx context.Context, obj Object, opts ...DeleteOption) error

	// Post posts a Kubernetes event about any object; see [Subject.Post].
	Post(about Object, kind, reason, message string)

	// RESTConfig configures clients of any library that builds on client-go. There
	// is no limit of rates in it: their requests share the operator's limit of
	// requests under way. With an election, what they write is refused while
	// another replica works.
	RESTConfig() *rest.Config
}

// Get reads an object by its name, in the namespace of the object being handled
// unless [InNamespace] says otherwise:
//
//	pod, err := gopf.Get[*corev1.Pod](ctx, c.API, "web-0")
func Get[T Object](ctx context.Context, api Client, name string, opts ...ObjectOption) (T, error) {
	obj := newObject[T]()
	obj.SetName(name)
	if err := api.Get(ctx, obj, opts...); err != nil {
		var none T
		return none, err
	}
	return obj, nil
}

// List reads objects into memory; see [Client.List]:
//
//	pods, err := gopf.List[*corev1.Pod](ctx, c.API, gopf.WithLabels("app=web"))
func List[T Object](ctx context.Context, api Client, opts ...ListOption) ([]T, error) {
	var all []T
	for obj, err := range Each[T](ctx, api, opts...) {
		if err != nil {
			return nil, err
		}
		all = append(all, obj)
	}
	return all, nil
}

// Each goes through objects without having all of them in memory; see
// [Client.List]:
//
//	for pod, err := range gopf.Each[*corev1.Pod](ctx, c.API, gopf.AllNamespaces()) {
//		if err != nil {
//			return err
//		}
//		…
//	}
func Each[T Object](ctx context.Context, api Client, opts ...ListOption) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for obj, err := range api.List(ctx, newObject[T](), opts...) {
			one, _ := obj.(T)
			if !yield(one, err) || err != nil {
				return
			}
		}
	}
}

// UnknownOutcomeError tells that a write was sent and may have been made, but
// that the answer got lost and nobody knows.
type UnknownOutcomeError struct{ Err error }

func (e *UnknownOutcomeError) Error() string { return e.Err.Error() }

func (e *UnknownOutcomeError) Unwrap() error { return e.Err }
