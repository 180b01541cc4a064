package registry

import (
	"crypto/x509"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/object"
)

// Admission is what was said about a handler of reviews in particular.
type Admission struct {
	Mutating    bool
	Operations  []string // "CREATE", "UPDATE", "DELETE", "CONNECT"; none for all
	Subresource string   // "" for the object itself, "*" for it and all subresources

	SideEffects    bool // it has some, but not in dry runs
	IgnoreFailures bool // whatever fails, denials included, is as good as a yes
	Persistent     bool // requests wait for it also while the operator is not running
	EveryNamespace bool // system namespaces are not left out

	// Typed handlers cannot read subresources of other kinds, such as scales.
	Typed bool
	// Labels are those criteria for labels that the server can check by itself.
	Labels []metav1.LabelSelectorRequirement
}

// Takes tells whether the handler is declared for reviews of this operation on
// this subresource.
//
// Mutating handlers get deletions only if they are for nothing else: there is
// nothing to be changed in them.
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

// Review is a request to the API that waits for our consent.
type Review struct {
	UID         string // of the review
	Operation   string
	Subresource string
	Kind        schema.GroupVersionKind // of the object in the request: a Scale for the subresource of that name
	DryRun      bool                    // nothing will be stored
	User        authenticationv1.UserInfo

	Old *object.Body // before; nil for creations
	New *object.Body // as wanted; nil for deletions

	Header map[string][]string // of the HTTP request
	Client *x509.Certificate   // of the API server, if it showed one that was verified

	Warnings []string // for the user; the handler adds to them
}

// Diff is what the request changes.
func (r *Review) Diff() diff.Diff { return diff.Of(fields(r.Old), fields(r.New)) }

func fields(b *object.Body) any {
	if b == nil {
		return nil
	}
	return b.Map()
}

// DeniedError is the refusal of a review, with the code to answer with; 0 is 500.
type DeniedError struct {
	Code int
	Err  error
}

func (e *DeniedError) Error() string { return e.Err.Error() }
func (e *DeniedError) Unwrap() error { return e.Err }
