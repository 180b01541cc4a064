package gopftest

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// modified is the real API server's text for a failed optimistic lock. Some clients
// search for it.
const modified = "the object has been modified; please apply your changes to the latest version and try again"

// statusOf converts an error to the response body. Errors that are not from the API
// become 500 without a reason.
func statusOf(err error) *metav1.Status {
	s := metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
	if status, ok := err.(apierrors.APIStatus); ok || errors.As(err, &status) {
		s = status.Status()
	}
	s.Kind, s.APIVersion = "Status", "v1"
	if s.Code == 0 {
		s.Code = http.StatusInternalServerError
	}
	return &s
}

func (s *scope) notFound() error { return apierrors.NewNotFound(s.resource.groupResource(), s.name) }

func (s *scope) conflict(err error) error {
	return apierrors.NewConflict(s.resource.groupResource(), s.name, err)
}

func (s *scope) modified() error { return s.conflict(errors.New(modified)) }

// badVersion is the error for a list or watch at a version that is not a number.
func badVersion(version string, err error) error {
	return fmt.Errorf("resourceVersion: Invalid value: %q: %w", version, err)
}

// errTooLarge is the error for a resource version that is not reached yet.
func errTooLarge(asked, current int64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", asked, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version",
	}}
	return err
}

// errUID is the error for a request about another object of the same name. The text is
// that of the real API server's storage.
func errUID(s *scope, asked, found any) error {
	return s.conflict(fmt.Errorf("StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: "+
		"Precondition failed: UID in precondition: %v, UID in object meta: %v", s.storageKey(), asked, found))
}

func (s *scope) storageKey() string {
	parts := []string{"/registry", s.resource.Group, s.resource.Plural, s.namespace, s.name}
	return strings.Join(strings.FieldsFunc(strings.Join(parts, "/"), func(r rune) bool { return r == '/' }), "/")
}

func notAcceptable(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable, Message: message,
	}}
}

func errNotAcceptable(accepted ...string) error {
	return notAcceptable("only the following media types are accepted: " + strings.Join(accepted, ", "))
}

func errUnsupportedMediaType(accepted ...string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: "the body of the request was in an unknown format - accepted media types include: " + strings.Join(accepted, ", "),
	}}
}
