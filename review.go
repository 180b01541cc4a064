package gopf

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/registry"
)

// Review is a request to the API of the cluster that waits for the consent of
// the operator. Object is the object as it is wanted, or, for deletions, as it
// is.
type Review[T Object] struct {
	*Subject[T]
	// Operation is what is requested.
	Operation Operation
	// Subresource is the part of the object that is written to, such as "status";
	// "" for the object itself.
	Subresource string
	// Old is the object before; an empty one, without a name or a UID, for
	// creations.
	Old T
	// Diff is what the request changes.
	Diff diff.Diff
	// DryRun tells that nothing will be stored: there must be no side effects.
	DryRun bool
	// User is who has sent the request.
	User authenticationv1.UserInfo
	// Header is that of the HTTP request of the API server.
	Header http.Header
	// Client is the certificate of the API server, if it has shown one that was
	// verified; nil otherwise.
	Client *x509.Certificate
}

// Warn tells something to the user who has sent the request; kubectl prints it.
func (r *Review[T]) Warn(format string, args ...any) {
	r.req.Review.Warnings = append(r.req.Review.Warnings, fmt.Sprintf(format, args...))
}

// ReviewFunc consents to a request by returning nil, and refuses it by returning
// an error: best made with [Deny], whose text the user gets to see.
//
// The time for an answer is short, 30 s at the most, and there is no second
// attempt.
type ReviewFunc[T Object] func(context.Context, *Review[T]) error

// Operation is what is requested in a review.
type Operation string

// The operations.
const (
	OperationCreate  Operation = "CREATE"
	OperationUpdate  Operation = "UPDATE"
	OperationDelete  Operation = "DELETE"
	OperationConnect Operation = "CONNECT"
)

// Validate calls fn before a request of anybody about the objects is granted;
// fn may refuse it. See [AdmissionSettings] for how the cluster gets to ask.
//
// Filters look at the object as it is wanted. Those for labels that compare with
// a value, [Present] or [Absent] are checked by the cluster already.
func (r *Resource[T]) Validate(id string, fn ReviewFunc[T], opts ...ReviewOption) {
	r.review(id, false, fn, opts)
}

// Mutate calls fn before a request of anybody about the objects is granted; fn
// may change what is wanted, by the Patch, and may refuse it. Deletions are
// reviewed only if [Operations] names nothing else.
func (r *Resource[T]) Mutate(id string, fn ReviewFunc[T], opts ...ReviewOption) {
	r.review(id, true, fn, opts)
}

func (r *Resource[T]) review(id string, mutating bool, fn ReviewFunc[T], opts []ReviewOption) {
	a := &registry.Admission{Mutating: mutating, Labels: r.labels, Typed: !isUntyped[T]()}
	for _, o := range opts {
		o.review(a)
	}
	switch {
	case fn == nil:
		r.op.problem("handler %q has no function", id)
		return
	case r.selected != "":
		r.op.problem("handler %q: Select is for what is watched; use WithLabel for reviews", id)
		return
	case r.change != nil && (r.change.Old != nil || r.change.New != nil):
		r.op.problem("handler %q: reviews know no Changed; use Value, or compare in the handler", id)
		return
	}
	r.op.declare(&registry.Handler{
		Family: registry.Reviews, ID: storedID(id, r.change), Where: caller(), Of: r.of, Managed: r.managed,
		Criteria: r.criteria, Change: r.change, When: r.when, Admission: a,
		Call: reviewer(fn),
	})
}

// reviewer makes a handler's function one that takes any object.
func reviewer[T Object](fn ReviewFunc[T]) func(context.Context, *registry.Request) error {
	return func(ctx context.Context, req *registry.Request) error {
		review, err := newReview[T](req)
		if err != nil {
			return &registry.DeniedError{Code: http.StatusUnprocessableEntity, Err: err}
		}
		return classify(fn(ctx, review))
	}
}

func newReview[T Object](req *registry.Request) (*Review[T], error) {
	s, err := newSubject[T](req)
	if err != nil {
		return nil, err
	}
	r := req.Review
	review := &Review[T]{
		Subject: s, Operation: Operation(r.Operation), Subresource: r.Subresource,
		DryRun: r.DryRun, User: r.User, Header: r.Header, Client: r.Client, Diff: r.Diff(),
	}
	if r.Old != nil {
		review.Old = decodeOld[T](r.Old.Map(), r.Old)
	} else {
		review.Old = emptyObject[T]()
	}
	if c := req.Handler.Change; c != nil {
		review.Diff = review.Diff.At(c.Path...)
	}
	return review, nil
}

// AdmissionError refuses a request. Make one with [Deny], unless a code other than
// 403 is wanted.
type AdmissionError struct {
	Message string
	Code    int // of the answer to the user; 0 is 500
}

func (e *AdmissionError) Error() string { return e.Message }

// Deny refuses a request with a text for the user.
func Deny(format string, args ...any) error {
	return &AdmissionError{Message: fmt.Sprintf(format, args...), Code: http.StatusForbidden}
}

// asDenial is the refusal in the engine's terms, whatever is said around it.
func (e *AdmissionError) asDenial(whole error) error {
	return &registry.DeniedError{Code: e.Code, Err: errors.New(whole.Error())}
}

// ReviewOption tunes a handler of reviews.
type ReviewOption interface{ review(*registry.Admission) }

type reviewOption func(*registry.Admission)

func (o reviewOption) review(a *registry.Admission) { o(a) }

// Operations are what the handler is asked about, one at the least; the default
// is all, but for mutating handlers, which are not asked about deletions.
func Operations(operations ...Operation) ReviewOption {
	return reviewOption(func(a *registry.Admission) {
		if a.Operations == nil {
			a.Operations = []string{}
		}
		for _, o := range operations {
			a.Operations = append(a.Operations, string(o))
		}
	})
}

// Subresource makes the handler be asked about requests for a part of the object
// only: "status", "scale", or "*" for the object and all of its parts. Those that
// are of another kind than the object, such as "scale", need an untyped handle.
func Subresource(name string) ReviewOption {
	return reviewOption(func(a *registry.Admission) { a.Subresource = name })
}

// SideEffects tells that the handler does something besides answering, though
// not in dry runs.
func SideEffects() ReviewOption {
	return reviewOption(func(a *registry.Admission) { a.SideEffects = true })
}

// IgnoreFailures grants requests when the operator cannot be asked. The default is
// to refuse them.
func IgnoreFailures() ReviewOption {
	return reviewOption(func(a *registry.Admission) { a.IgnoreFailures = true })
}

// Persistent leaves the webhook in place when the operator stops: requests are then
// refused, unless failures are ignored. By default it is removed, unless there is an
// election: then other replicas answer, and it stays.
func Persistent() ReviewOption {
	return reviewOption(func(a *registry.Admission) { a.Persistent = true })
}

// EveryNamespace makes the handler be asked about kinds of the core and apps groups
// also in kube-system and in the operator's own namespace. By default these are
// left out: an operator must not keep its own pods from being created.
func EveryNamespace() ReviewOption {
	return reviewOption(func(a *registry.Admission) { a.EveryNamespace = true })
}

// requirement is what the cluster can check of a matcher for a label by itself.
func (m Matcher) requirement(key string) (metav1.LabelSelectorRequirement, bool) {
	r := metav1.LabelSelectorRequirement{Key: key, Operator: m.operator}
	if m.operator == metav1.LabelSelectorOpIn {
		r.Values = []string{m.value}
	}
	return r, m.operator != ""
}
