package gopf

import (
	"context"
	"iter"

	"k8s.io/client-go/rest"
)

// Client accesses the cluster with the operator's credentials. Requests that fail
// because of the network or the server are retried if that is safe; see
// [NetworkingSettings.ErrorBackoffs]. If the API server rejects the credentials,
// requests wait for the next login. With leader election, writes are refused while
// another replica is the leader.
//
// Objects are pointers to structs that embed metav1.ObjectMeta, or [Unstructured].
// Their resource is known for types passed to [For] or [Kind] and for the types of
// k8s.io/api. Other objects need a TypeMeta or the option [Of]; otherwise the call
// returns an [UnknownKindError]. A namespaced object without a namespace gets that of
// the handled object.
//
// Errors of the API server are those of apimachinery: test them with
// apierrors.IsNotFound and similar functions. If the response of a write is lost, the
// client reads the object to confirm the outcome. If that fails, it returns an
// [UnknownOutcomeError].
//
// In tests, embed the interface in a struct and implement the methods that you need.
type Client interface {
	// Get reads the object with the namespace and name of obj into obj, and replaces
	// everything in it. It always sends a request; for lookups from memory, use
	// [Index]. See also the function [Get].
	Get(ctx context.Context, obj Object, opts ...ObjectOption) error

	// List returns the objects of obj's resource in the namespace of the handled
	// object; in all namespaces if that is cluster-scoped, or with [AllNamespaces].
	// Each is a new object of obj's type.
	//
	// The objects are read page by page during the loop. If the loop takes minutes,
	// later pages may be newer than earlier ones. An error ends the loop. See also the
	// functions [List] and [Each].
	List(ctx context.Context, obj Object, opts ...ListOption) iter.Seq2[Object, error]

	// Create creates the object and updates obj from the response. If the name exists,
	// the error satisfies apierrors.IsAlreadyExists.
	//
	// If the response is lost, an existing object that has all fields of obj counts as
	// created, even if another client created it at that moment. The client, not the
	// server, chooses the name for a GenerateName, so this works for it as well.
	Create(ctx context.Context, obj Object, opts ...ObjectOption) error

	// Apply creates the object, or changes its fields to those of obj, by server-side
	// apply. It then updates obj from the response. Fields that the operator applied
	// before and that are missing in obj are removed; other missing fields are not
	// touched. So always pass all fields that the operator wants to set, and never an
	// object that was read:
	//
	//	cm := &corev1.ConfigMap{Data: map[string]string{"size": "10"}}
	//	cm.Name = c.Object.Name
	//	err := c.API.Apply(ctx, cm)
	//
	// The field manager is [PostingSettings.ReportingComponent] if it was changed,
	// otherwise the name of the executable; see also [FieldManager]. If another field
	// manager owns a field with a different value, Apply returns a conflict, unless
	// [Force] is given.
	Apply(ctx context.Context, obj Object, opts ...ApplyOption) error

	// Merge sends a JSON merge patch for the object with the namespace and name of obj,
	// and updates obj from the response. The patch is a map, a struct, or JSON as
	// []byte; null removes a field, and lists are replaced. A metadata.resourceVersion
	// in the patch makes it fail with a conflict if the object has another version.
	Merge(ctx context.Context, obj Object, patch any, opts ...MergeOption) error

	// Delete deletes the object with the namespace and name of obj. If obj has a UID,
	// another object with that name is not deleted. It is no error if there is no such
	// object. Delete does not wait for finalizers.
	Delete(ctx context.Context, obj Object, opts ...DeleteOption) error

	// Post posts a Kubernetes event about any object; see [Subject.Post].
	Post(about Object, kind, reason, message string)

	// RESTConfig returns a configuration for clients of any library that builds on
	// client-go. It has no rate limit: its requests share the operator's limit of
	// requests in flight. With leader election, writes are refused while another
	// replica is the leader.
	RESTConfig() *rest.Config
}

// Get reads the object with the name, in the namespace of the handled object or in that
// of [InNamespace]; see [Client.Get]:
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

// List reads all objects of a resource into memory; see [Client.List]. After an error
// it returns no objects.
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

// Each returns the objects of a resource one by one, without keeping all of them in
// memory; see [Client.List]. An error ends the loop.
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

// UnknownOutcomeError means that a write was sent, but its response was lost and its
// outcome could not be confirmed. The write may or may not have happened.
type UnknownOutcomeError struct{ Err error }

func (e *UnknownOutcomeError) Error() string { return e.Err.Error() }

func (e *UnknownOutcomeError) Unwrap() error { return e.Err }
