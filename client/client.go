// Package client is the interface through which handlers access the cluster: c.API in
// every handler.
//
//	pod, err := client.Get[*corev1.Pod](ctx, c.API, "web-0")
//
//	for job, err := range client.Each[*batchv1.Job](ctx, c.API, client.LabelSelector("app=web")) {
//		if err != nil {
//			return err
//		}
//		…
//	}
//
//	cm := &corev1.ConfigMap{Data: map[string]string{"size": "10"}}
//	cm.Name = c.Object.Name
//	err = c.API.Apply(ctx, cm)
package client

import (
	"context"
	"iter"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Object is a Kubernetes object: a pointer to a struct that embeds metav1.ObjectMeta,
// or *unstructured.Unstructured.
type Object = metav1.Object

// Client accesses the cluster with the operator's credentials. Requests that fail
// because of the network or the server are retried if that is safe; see
// gopf.NetworkingSettings. If the API server rejects the credentials, requests wait for
// the next login. With leader election, writes are refused while another replica is the
// leader.
//
// The resource of an object is known for types passed to gopf.For or gopf.RegisterType
// and for the types of k8s.io/api. Other objects need a TypeMeta or the option [Of];
// otherwise the call returns an [UnknownKindError]. A namespaced object without a
// namespace gets that of the handled object.
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
	// gopf.Index. See also the function [Get].
	Get(ctx context.Context, obj Object, opts ...CallOption) error

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
	Create(ctx context.Context, obj Object, opts ...CreateOption) error

	// Apply creates the object, or changes its fields to those of obj, by server-side
	// apply. It then updates obj from the response. Fields that the operator applied
	// before and that are missing in obj are removed; other missing fields are not
	// touched. So always pass all fields that the operator wants to set, and never an
	// object that was read.
	//
	// The field manager is gopf.PostingSettings.ReportingComponent if it was changed,
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

	// Event posts a Kubernetes event about each of the objects; see [About] and
	// gopf.Subject.Event. The objects must have names, and their resources must be
	// known. Otherwise the event is logged instead.
	//
	//	c.API.Event(client.About(pod, pvc), client.Warning, "Lost", "The volume %s is lost.", name)
	Event(about []Object, t EventType, reason, format string, args ...any)

	// RESTConfig returns a configuration for clients of any library that builds on
	// client-go. It has no rate limit: its requests share the operator's limit of
	// requests in flight. With leader election, writes are refused while another
	// replica is the leader.
	RESTConfig() *rest.Config
}

// EventType is the type of a Kubernetes event. Any other text than these is allowed: such
// events are posted whatever gopf.PostingSettings.Level is.
type EventType string

// The types of Kubernetes events.
const (
	// Normal is the type of events for information. They are posted unless
	// gopf.PostingSettings.Level is above INFO.
	Normal EventType = "Normal"
	// Warning is the type of events about possible problems. They are posted unless
	// gopf.PostingSettings.Level is above WARN.
	Warning EventType = "Warning"
	// Failure is the type of events about errors: "Error", as in Kopf. They are posted
	// unless gopf.PostingSettings.Level is above ERROR.
	Failure EventType = "Error"
)

// About returns the objects as a list, for [Client.Event].
func About(objects ...Object) []Object { return objects }

// Get reads the object with the name, in the namespace of the handled object or in that
// of [InNamespace]; see [Client.Get]:
//
//	pod, err := client.Get[*corev1.Pod](ctx, c.API, "web-0")
func Get[T Object](ctx context.Context, api Client, name string, opts ...CallOption) (T, error) {
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
//	pods, err := client.List[*corev1.Pod](ctx, c.API, client.LabelSelector("app=web"))
func List[T Object](ctx context.Context, api Client, opts ...ListOption) ([]T, error) {
	var all []T
	keep := CallOption(func(o *Options) { o.Keep = true })
	for obj, err := range Each[T](ctx, api, append(slices.Clip(opts), keep)...) {
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
//	for pod, err := range client.Each[*corev1.Pod](ctx, c.API, client.AllNamespaces()) {
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

func newObject[T Object]() T {
	return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
}
