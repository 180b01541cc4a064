package handler

import (
	"context"
	"crypto/x509"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/terminal"
)

// Admission has the options of a review handler.
type Admission struct {
	Mutating    bool
	Operations  []string // "CREATE", "UPDATE", "DELETE" or "CONNECT"; empty means all
	Subresource string   // "" means the object itself, "*" the object and all subresources

	SideEffects    bool // the handler has side effects, but not in dry runs
	IgnoreFailures bool // the API server accepts the request if the webhook fails
	Persistent     bool // the webhook configuration stays while the operator is not running
	EveryNamespace bool // system namespaces are included

	// Typed means that the handler decodes objects into a Go type. It cannot decode
	// subresources of another kind, such as Scale.
	Typed bool
	// Labels are the label criteria that the API server can check itself.
	Labels []metav1.LabelSelectorRequirement
}

// Takes reports whether the handler is declared for reviews of this operation on this
// subresource.
//
// Mutating handlers get deletions only if they are declared for nothing else: there is
// nothing to mutate in a deletion.
func (a *Admission) Takes(operation, subresource string) bool {
	switch {
	case len(a.Operations) > 0 && !slices.Contains(a.Operations, operation):
		return false
	case a.Mutating && operation == "DELETE" && !onlyDeletes(a.Operations):
		return false
	}
	return a.Subresource == "*" || a.Subresource == subresource
}

// Updates reports whether the handler is declared for reviews of updates.
func (a *Admission) Updates() bool {
	return len(a.Operations) == 0 || slices.Contains(a.Operations, "UPDATE")
}

func onlyDeletes(operations []string) bool {
	return len(operations) > 0 && !slices.ContainsFunc(operations, func(o string) bool { return o != "DELETE" })
}

// Review is an admission request.
type Review struct {
	UID         string // the uid of the request, not of the object
	Operation   string
	Subresource string
	Kind        schema.GroupVersionKind // the kind of the object in the request, such as Scale for a subresource
	DryRun      bool                    // the object will not be stored
	User        authenticationv1.UserInfo

	Old *object.Body // the current object; nil means a creation
	New *object.Body // the proposed object; nil means a deletion

	Header map[string][]string // the headers of the HTTP request
	Client *x509.Certificate   // the verified client certificate; may be nil
	Peer   string              // the host that sent the HTTP request

	// Context returns the context of the review, for filters: it ends at the deadline of the
	// API server. May be nil.
	Context func() context.Context

	Warnings []string // warnings for the user; see Warn
}

const (
	// longestWarning limits one warning, and allWarnings those of a review together, in bytes. API
	// servers send 4,096 characters to the user at most. Handlers may quote objects of tenants.
	longestWarning = 4 << 10
	allWarnings    = 4 * longestWarning
)

// Warn adds a warning. It shortens a long one, and drops those beyond the limit of a review.
func (r *Review) Warn(text string) {
	left := allWarnings
	for _, w := range r.Warnings {
		left -= len(w)
	}
	if text = terminal.Cut(text, longestWarning); text != "" && len(text) <= left {
		r.Warnings = append(r.Warnings, text)
	}
}

// Diff returns the difference between the current and the proposed object.
func (r *Review) Diff() diff.Diff {
	if r.Old != nil && r.New != nil {
		const levels = 3 // like metadata.labels.x: deeper ones are usually small
		if before, after, err := jsonvalue.Differing(r.Old.Raw(), r.New.Raw(), levels); err == nil {
			return diff.Of(before, after)
		}
	}
	return diff.Of(fields(r.Old), fields(r.New))
}

func fields(b *object.Body) any {
	if b == nil {
		return nil
	}
	return b.Map()
}

// DeniedError denies a review with an HTTP status code; 0 means 500.
type DeniedError struct {
	Code int
	Err  error
}

func (e *DeniedError) Error() string { return e.Err.Error() }
func (e *DeniedError) Unwrap() error { return e.Err }
