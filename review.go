package gopf

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/handler"
)

// Review is the argument of an admission handler: an admission request. Object is the
// proposed object; for deletions, it is the current one.
//
// The handler decides about the request: nil allows it, and any error denies it. The
// user sees the text of the error. [Deny] responds with the code 403, other errors with
// 500. A panic denies the request with 500, and its value is only in the operator's
// log. The response must arrive within the timeout of the API server, which is at most
// 30 s; then the context is canceled. There are no retries.
type Review[T Object] struct {
	*Subject[T]
	// Operation is the requested operation.
	Operation admissionv1.Operation
	// Subresource is the written subresource, such as "status". "" means the object
	// itself.
	Subresource string
	// Old is the current object. For creations it is empty, without a name or UID.
	Old T
	// Diff is the requested change: the difference between Old and Object.
	Diff diff.Diff
	// DryRun reports that nothing will be stored. The handler must then have no side
	// effects.
	DryRun bool
	// User is the user who sent the request to the API server.
	User authenticationv1.UserInfo
	// Header has the HTTP headers of the API server's request to the webhook.
	Header http.Header
	// ClientCertificate is the verified client certificate of the API server. nil means none.
	ClientCertificate *x509.Certificate
	// ClientAddress is the host that sent the request to the webhook: an API server, or a
	// proxy. Any network peer can send reviews, and choose all of their values except this
	// one. "" means that the request did not come over a network, as in tests.
	ClientAddress string
}

// AddWarning adds a warning to the response, which kubectl prints for the user. It does not
// affect the decision. API servers shorten warnings above 256 characters, and send at most 4,096
// characters per request. So a warning is cut at 4 KiB, and those beyond 16 KiB are dropped.
func (r *Review[T]) AddWarning(format string, args ...any) {
	r.req.Review.Warn(fmt.Sprintf(format, args...))
}

// Validate declares a validating admission handler: the API server calls fn before it
// stores, changes or deletes a matching object, and fn may deny the request. It
// requires [AdmissionSettings.Server]; see there for the webhook configurations.
//
//	dbs.Validate("size", func(ctx context.Context, r *gopf.Review[*Database]) error {
//		if r.Object.Spec.Size > 1000 {
//			return gopf.Deny("%d is too large", r.Object.Spec.Size)
//		}
//		return nil
//	}, gopf.Operations(admissionv1.Create, admissionv1.Update))
//
// Validating handlers run concurrently, after all mutating ones. Filters look at the
// proposed object; the API server itself evaluates label filters with [Is], [Present]
// and [Absent]. The patch of fn is discarded. All replicas respond, even paused ones
// and those on standby. While the operator is unreachable, requests are denied unless
// [IgnoreFailures] is given.
func (r *Resource[T]) Validate(id string, fn func(context.Context, *Review[T]) error, opts ...ReviewOption) {
	r.review(id, false, fn, opts)
}

// Mutate declares a mutating admission handler. It works like [Resource.Validate], and
// fn may also change the proposed object through Patch before it is stored:
//
//	dbs.Mutate("owner", func(ctx context.Context, r *gopf.Review[*Database]) error {
//		if r.Object.Spec.Owner == "" {
//			r.Patch.Set("spec.owner", r.User.Username)
//		}
//		return nil
//	}, gopf.Operations(admissionv1.Create))
//
// Mutating handlers run one after another, and each sees the changes of the previous
// ones. The API server may call fn again for the same request, so it must be
// idempotent. Deletions are reviewed only if [admissionv1.Delete] is the only operation of
// [Operations].
func (r *Resource[T]) Mutate(id string, fn func(context.Context, *Review[T]) error, opts ...ReviewOption) {
	r.review(id, true, fn, opts)
}

func (r *Resource[T]) review(id string, mutating bool, fn func(context.Context, *Review[T]) error, opts []ReviewOption) {
	a := &handler.Admission{Mutating: mutating, Labels: r.labels, Typed: !isUntyped[T]()}
	for _, o := range opts {
		o.review(a)
	}
	switch {
	case fn == nil:
		r.op.problem("handler %q has no function", id)
		return
	case r.selected != "":
		r.op.problem("handler %q: Select does not apply to reviews; use WithLabel instead", id)
		return
	case r.field != nil && (r.field.Old != nil || r.field.New != nil):
		r.op.problem("handler %q: Changed is not supported for reviews; use Value, or compare in the handler", id)
		return
	}
	r.op.declare(&handler.Handler{
		Family: handler.Reviews, ID: storedID(id, r.field), Where: caller(), Of: r.of, Type: typeOf[T](), Managed: r.managed,
		Criteria: r.criteria, Change: r.field, When: r.when, WhenAt: r.whenAt, Admission: a,
		Call: reviewer(fn, &r.op.hooks),
	})
}

// reviewer returns a function that decodes the object of a request and calls fn. hooks may
// be nil.
func reviewer[T Object](fn func(context.Context, *Review[T]) error, hooks *hooks) func(context.Context, *handler.Request) error {
	return func(ctx context.Context, req *handler.Request) error {
		review, err := newReview[T](req)
		if err != nil {
			return &handler.DeniedError{Code: http.StatusUnprocessableEntity, Err: err}
		}
		defer hooks.check(review)
		return hooks.call(ctx, callOf(req, "review", &review.Log), func(ctx context.Context) error { return fn(ctx, review) })
	}
}

func newReview[T Object](req *handler.Request) (*Review[T], error) {
	s, err := newSubject[T](req)
	if err != nil {
		return nil, err
	}
	r := req.Review
	review := &Review[T]{
		Subject: s, Operation: admissionv1.Operation(r.Operation), Subresource: r.Subresource,
		DryRun: r.DryRun, User: r.User, Header: r.Header, ClientCertificate: r.Client, ClientAddress: r.Peer, Diff: r.Diff(),
	}
	if r.Old != nil {
		review.Old = decodeStored[T](r.Old)
	} else {
		review.Old = emptyObject[T]()
	}
	if c := req.Handler.Change; c != nil {
		review.Diff = review.Diff.At(c.Path...)
	}
	return review, nil
}

// AdmissionError denies an admission request with a response code. Create one with
// [Deny], unless the code must be other than 403.
type AdmissionError struct {
	Message string
	Code    int // the HTTP code of the response; 0 means 500
}

func (e *AdmissionError) Error() string { return e.Message }

// Deny returns an error that denies an admission request with the code 403. The user
// sees the text. The arguments are those of [fmt.Sprintf].
func Deny(format string, args ...any) error {
	return &AdmissionError{Message: fmt.Sprintf(format, args...), Code: http.StatusForbidden}
}

// asDenial returns the denial as an error of the engine, with the text of the whole
// chain.
func (e *AdmissionError) asDenial(whole error) error {
	return &handler.DeniedError{Code: e.Code, Err: errors.New(whole.Error())}
}

// ReviewOption is an option of [Resource.Validate] and [Resource.Mutate].
type ReviewOption interface{ review(*handler.Admission) }

type reviewOption func(*handler.Admission)

func (o reviewOption) review(a *handler.Admission) { o(a) }

// Operations restricts the handler to these operations; at least one is required.
// Default: all operations; for mutating handlers, all except deletions.
func Operations(operations ...admissionv1.Operation) ReviewOption {
	return reviewOption(func(a *handler.Admission) {
		if a.Operations == nil {
			a.Operations = []string{}
		}
		for _, o := range operations {
			a.Operations = append(a.Operations, string(o))
		}
	})
}

// Subresource restricts the handler to requests for a subresource, such as "status" or
// "scale". "*" means the object and all its subresources. Default: only the object
// itself. A subresource of another kind than the object, such as "scale", requires an
// untyped handle; see [Operator.Resource].
func Subresource(name string) ReviewOption {
	return reviewOption(func(a *handler.Admission) { a.Subresource = name })
}

// SideEffects declares that the handler has side effects, except in dry runs. Default:
// none.
func SideEffects() ReviewOption {
	return reviewOption(func(a *handler.Admission) { a.SideEffects = true })
}

// IgnoreFailures allows requests while the operator is unreachable or overloaded. Objects
// that cannot be reviewed are denied nevertheless: those that cannot be parsed, and reviews
// of more than 4 MiB. Default: all of these requests are denied.
func IgnoreFailures() ReviewOption {
	return reviewOption(func(a *handler.Admission) { a.IgnoreFailures = true })
}

// Persistent leaves the webhook in place when the operator stops: requests are then
// denied, unless [IgnoreFailures] is given. Default: the webhook is removed; with
// leader election it stays, because other replicas respond.
func Persistent() ReviewOption {
	return reviewOption(func(a *handler.Admission) { a.Persistent = true })
}

// EveryNamespace includes kube-system and the operator's own namespace for resources of
// the core and apps groups. Default: these are excluded, because a webhook could
// prevent the operator's own pods from starting.
func EveryNamespace() ReviewOption {
	return reviewOption(func(a *handler.Admission) { a.EveryNamespace = true })
}

// requirement returns the matcher as a label selector for the API server. ok is false
// if there is none.
func (m Matcher) requirement(key string) (metav1.LabelSelectorRequirement, bool) {
	r := metav1.LabelSelectorRequirement{Key: key, Operator: m.operator}
	if m.operator == metav1.LabelSelectorOpIn {
		r.Values = []string{m.value}
	}
	return r, m.operator != ""
}
