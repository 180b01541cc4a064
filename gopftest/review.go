package gopftest

import (
	"context"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/uuid"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
)

// ReviewCall is one call of an admission handler in a test; see [Review].
type ReviewCall[T gopf.Object] struct {
	*gopf.Review[T]
	*Call[T]
}

// Requested sets the operation under review. Default: [admissionv1.Update] with the
// option [Was], otherwise [admissionv1.Create].
func Requested(operation admissionv1.Operation) CallOption {
	return func(o *callOptions) { o.operation = operation }
}

// RequestedBy sets the user who sent the request under review. Default: "user", in no
// groups.
func RequestedBy(name string, groups ...string) CallOption {
	return func(o *callOptions) { o.user = authenticationv1.UserInfo{Username: name, Groups: groups} }
}

// RequestedDry marks the request under review as a dry run.
func RequestedDry() CallOption { return func(o *callOptions) { o.dry = true } }

// RequestedPart sets the subresource of the request under review. Default: none.
func RequestedPart(subresource string) CallOption {
	return func(o *callOptions) { o.part = subresource }
}

// Review returns the argument for one call of a validating or mutating admission
// handler. obj is the proposed object. The option [Was] sets the existing object.
// Nothing is stored in the cluster; [ReviewCall.Mutated] returns the object with the
// handler's changes.
func Review[T gopf.Object](t testing.TB, c *Cluster, obj T, opts ...CallOption) *ReviewCall[T] {
	t.Helper()
	call, o := bareCall[T](t, c, opts)
	wanted, info := call.find(obj)
	review := &handler.Review{
		UID: string(uuid.NewUUID()), Operation: string(o.operation), Subresource: o.part, DryRun: o.dry,
		Kind: wanted.GroupVersionKind(), User: o.user,
	}
	if o.old != nil {
		before, err := untyped(o.old)
		if err != nil {
			t.Fatal(err)
		}
		if before.GetUID() == "" {
			before.SetUID(uuid.NewUUID())
		}
		wanted.SetUID(before.GetUID())
		review.Old = call.body(before)
	}
	switch {
	case review.Operation == "" && o.old == nil:
		review.Operation = string(admissionv1.Create)
	case review.Operation == "":
		review.Operation = string(admissionv1.Update)
	}
	body := call.body(wanted)
	if review.Operation == string(admissionv1.Delete) {
		if review.Old == nil {
			review.Old = body
		}
	} else {
		review.New = body
	}
	call.prepare(info, body, o)
	call.req.Review = review
	arg, err := gopf.TestArguments[T]{}.Review(call.req)
	if err != nil {
		t.Fatal(err)
	}
	call.subject = arg.Subject
	return &ReviewCall[T]{arg, call}
}

// body converts an object to the form in which reviews contain it.
func (c *Call[T]) body(u *unstructured.Unstructured) *object.Body {
	c.t.Helper()
	b, err := object.FromMap(u.Object)
	if err != nil {
		c.t.Fatal(err)
	}
	return b
}

// Run calls a handler as the operator does: a panic becomes an error. It returns the
// error of the handler.
func (c *ReviewCall[T]) Run(fn func(context.Context, *gopf.Review[T]) error) error {
	return plain(protect(func() error { return gopf.TestArguments[T]{}.ReviewHandler(fn)(c.t.Context(), c.req) }))
}

// Warnings returns the handler's warnings for the user.
func (c *ReviewCall[T]) Warnings() []string { return c.req.Review.Warnings }

// Mutated returns the object with the handler's changes, as it would be stored.
func (c *ReviewCall[T]) Mutated() T {
	c.t.Helper()
	c.reportLostEdits()
	after := jsonvalue.Clone(c.req.Body.Map()).(map[string]any)
	patch.Apply(after, c.req.Patch.Fields())
	for _, edit := range c.req.Patch.Edits() {
		edit(after)
	}
	return decodeAs[T](c.t, &unstructured.Unstructured{Object: after})
}
