package client

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/patch"
)

// CreateIfAbsent creates the object unless there is one with its name. It reports whether
// it created the object. An existing object is neither changed nor read into obj.
//
//	created, err := client.CreateIfAbsent(ctx, c.API, secret, client.OwnedBy(c.Object))
func CreateIfAbsent(ctx context.Context, api Client, obj Object, opts ...CreateOption) (created bool, err error) {
	switch err := api.Create(ctx, obj, opts...); {
	case err == nil:
		return true, nil
	case apierrors.IsAlreadyExists(err) && obj.GetName() != "":
		return false, nil
	default:
		return false, err
	}
}

// Scale sets the number of replicas of a resource that can be scaled, such as a Deployment,
// through its scale subresource. obj needs only a name. It is not updated.
//
//	err := client.Scale(ctx, c.API, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, 3)
func Scale(ctx context.Context, api Client, obj Object, replicas int, opts ...CallOption) error {
	all := []MergeOption{ScaleSubresource()}
	for _, opt := range opts {
		all = append(all, opt)
	}
	return api.Merge(ctx, obj, map[string]any{"spec": map[string]any{"replicas": replicas}}, all...)
}

// edits is the number of attempts of [Edit].
const edits = 6

// editing is the delay after conflicts in [Edit].
var editing = backoff.Backoff{First: 20 * time.Millisecond, Most: time.Second}

// Edit reads the object with the name, calls edit with it, and writes what edit changed. If
// another client changes the object in between, Edit starts over with the new state, so
// edit may be called several times; after six conflicts in a row, it returns the conflict.
// If edit changes nothing, Edit writes nothing. If edit returns an error, Edit returns it
// and writes nothing. It returns the object as written.
//
//	_, err := client.Edit(ctx, c.API, "web", func(d *appsv1.Deployment) error {
//		d.Spec.Template.Labels["restarted"] = "yes"
//		return nil
//	})
//
// The write contains only the changed fields. Fields that the Go type does not have stay
// as they are, also inside of lists. With [StatusSubresource], only changes of the status
// are written, otherwise all others.
func Edit[T Object](ctx context.Context, api Client, name string, edit func(T) error, opts ...MergeOption) (T, error) {
	var none T
	var o Options
	for _, opt := range opts {
		opt.ApplyToMerge(&o)
	}
	if o.Subresource == "scale" {
		return none, fmt.Errorf("edit: the scale subresource cannot be edited; use client.Scale")
	}
	for attempt := 1; ; attempt++ {
		obj, err := Get[T](ctx, api, name, o.place()...)
		if err != nil {
			return none, err
		}
		change, err := editOnce(ctx, api, obj, edit, &o)
		if err == nil && len(change) == 0 {
			return obj, nil
		}
		if err == nil {
			err = api.Merge(ctx, obj, change, opts...)
		}
		switch {
		case err == nil:
			return obj, nil
		case !apierrors.IsConflict(err) || attempt == edits:
			return none, err
		}
		if err := backoff.Sleep(ctx, editing.After(attempt)); err != nil {
			return none, err
		}
	}
}

// place returns the options that select the resource and the namespace.
func (o *Options) place() (opts []CallOption) {
	if o.Resource != "" {
		opts = append(opts, Of(o.Resource))
	}
	if o.Namespace != "" {
		opts = append(opts, InNamespace(o.Namespace))
	}
	return opts
}

// editOnce calls edit and returns the merge patch with its changes, bound to the version
// of the object. The patch is empty if there are none.
func editOnce[T Object](ctx context.Context, api Client, obj T, edit func(T) error, o *Options) (map[string]any, error) {
	version := obj.GetResourceVersion()
	before, err := fieldsOf(obj)
	if err != nil {
		return nil, fmt.Errorf("edit: %w", err)
	}
	if err := edit(obj); err != nil {
		return nil, err
	}
	after, err := fieldsOf(obj)
	if err != nil {
		return nil, fmt.Errorf("edit: %w", err)
	}
	keep(before, o)
	keep(after, o)
	change := patch.Between(before, after)
	if _, whole := any(obj).(*unstructured.Unstructured); !whole && hasList(change) {
		raw, err := reread(ctx, api, obj, o)
		if err != nil {
			return nil, err
		}
		if raw.GetResourceVersion() != version {
			return nil, apierrors.NewConflict(unknownResource, obj.GetName(), fmt.Errorf("the object has changed"))
		}
		keep(raw.Object, o)
		change = patch.Between(raw.Object, patch.Rebase(raw.Object, before, after).(map[string]any))
	}
	if len(change) == 0 {
		return nil, nil
	}
	metadata, ok := change["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		change["metadata"] = metadata
	}
	metadata["resourceVersion"] = version
	return change, nil
}

// keep removes the fields that this kind of edit does not write: all but the status, or
// the status and what only the API server may set.
func keep(fields map[string]any, o *Options) {
	if o.Subresource == "status" {
		for key := range fields {
			if key != "status" {
				delete(fields, key)
			}
		}
		return
	}
	delete(fields, "status")
	delete(fields, "apiVersion")
	delete(fields, "kind")
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		for _, key := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"} {
			delete(metadata, key)
		}
	}
}

// fieldsOf returns an object as decoded JSON.
func fieldsOf(obj Object) (map[string]any, error) {
	var source any = obj
	if u, ok := obj.(*unstructured.Unstructured); ok {
		source = u.Object
	}
	raw, err := jsonvalue.Marshal(source)
	if err == nil {
		err = jsonvalue.Check(raw, jsonvalue.MaxObject) // nulls in a list are short, and long as structs
	}
	if err != nil {
		return nil, fmt.Errorf("encode the %T: %w", obj, err)
	}
	return jsonvalue.Object(raw)
}
