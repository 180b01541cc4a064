package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf/internal/terminal"
)

// UnknownOutcomeError means that a write was sent and may have been applied, but its
// response was lost, truncated or unreadable. The client does not retry it: the caller
// must read the object and look for its own effect.
type UnknownOutcomeError struct {
	Code int // HTTP status; 0 if there was no response. 2xx means that the write was applied
	Err  error
}

func (e *UnknownOutcomeError) Error() string {
	if e.Code/100 == 2 {
		return fmt.Sprintf("the write was applied, but its response could not be read: %v", e.Err)
	}
	return fmt.Sprintf("the write may have been applied or not: %v", e.Err)
}

func (e *UnknownOutcomeError) Unwrap() error { return e.Err }

// Lost reports whether the response to a write was lost: its outcome is then unknown.
func Lost(err error) bool {
	_, unknown := errors.AsType[*UnknownOutcomeError](err)
	return unknown
}

// UnreachableError means that the server did not respond.
type UnreachableError struct {
	Host string
	Err  error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the API server %s cannot be reached: %v", e.Host, e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// MalformedError means that the server returned a response of the wrong form.
type MalformedError struct{ Err error }

func (e *MalformedError) Error() string { return fmt.Sprintf("malformed response: %v", e.Err) }
func (e *MalformedError) Unwrap() error { return e.Err }

// TimeoutError means that the server was silent for too long.
type TimeoutError struct{ After time.Duration }

func (e *TimeoutError) Error() string { return fmt.Sprintf("no response within %v", e.After) }

// Timeout returns true. It implements the method of net.Error.
func (e *TimeoutError) Timeout() bool { return true }

// Refused returns the status that the server returned as an error. It returns false for
// other errors, such as connection errors.
func Refused(err error) (metav1.Status, bool) {
	if s, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return s.ErrStatus, true
	}
	return metav1.Status{}, false
}

// Unavailable reports whether err means that the server is unreachable or overloaded,
// independently of the request.
func Unavailable(err error) bool {
	if s, refused := Refused(err); refused {
		return s.Code == http.StatusTooManyRequests || s.Code >= 500
	}
	var unreachable *UnreachableError
	return errors.As(err, &unreachable) || Lost(err)
}

const (
	maxErrorBody = 64 << 10
	maxErrorText = 256

	// maxErrorMessage limits the message of an error in bytes, and maxCauses the number of its
	// causes. Messages of the API server about several fields name all of them.
	maxErrorMessage = 4 << 10
	maxCauses       = 32
)

// statusError converts an unsuccessful response into an error.
func statusError(r *call, resp *http.Response) *apierrors.StatusError {
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	generic := apierrors.NewGenericServerResponse(resp.StatusCode, r.method, r.target.Info.GVR().GroupResource(),
		r.target.Name, "", 0, false)

	var status metav1.Status
	isJSON := json.Unmarshal(raw, &status) == nil
	switch {
	case isJSON && status.Kind == "Status":
		generic.ErrStatus = completed(status, generic.ErrStatus)
	case !isJSON:
		if text := cutText(strings.TrimSpace(string(raw))); text != "" {
			generic.ErrStatus.Message = text
		}
	}
	if seconds, ok := retryAfter(resp.Header, time.Now()); ok {
		if generic.ErrStatus.Details == nil {
			generic.ErrStatus.Details = &metav1.StatusDetails{}
		}
		generic.ErrStatus.Details.RetryAfterSeconds = seconds
	}
	if s := &generic.ErrStatus; tooLarge(*s) {
		s.Code, s.Reason = http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge
	}
	if s := &generic.ErrStatus; denied(*s) && aboutServer(s.Code) {
		s.Code, s.Reason = http.StatusForbidden, metav1.StatusReasonForbidden
	}
	shorten(&generic.ErrStatus)
	return generic
}

// denied reports whether admission control has denied the request. Webhooks choose the code of a
// denial, and that of an unexpected error is 500.
func denied(s metav1.Status) bool {
	return strings.HasPrefix(s.Message, `admission webhook "`) && strings.Contains(s.Message, `" denied the request`) ||
		strings.Contains(s.Message, "ValidatingAdmissionPolicy '") && strings.Contains(s.Message, "' denied request: ")
}

// aboutServer reports whether the code usually says something about the server, the credentials
// or the state of the object, and not about the content of the request.
func aboutServer(code int32) bool {
	switch code {
	case http.StatusUnauthorized, http.StatusNotFound, http.StatusConflict, http.StatusTooManyRequests:
		return true
	}
	return code >= 500
}

// shorten limits the texts of an error. They quote values that clients of the cluster choose, and an
// error is kept until the request succeeds.
func shorten(s *metav1.Status) {
	s.Message = terminal.CutMiddle(s.Message, maxErrorMessage)
	if s.Details == nil {
		return
	}
	s.Details.Causes = slices.Clone(s.Details.Causes[:min(len(s.Details.Causes), maxCauses)])
	for i := range s.Details.Causes {
		c := &s.Details.Causes[i]
		c.Message, c.Field = terminal.CutMiddle(c.Message, maxErrorText), terminal.CutMiddle(c.Field, maxErrorText)
	}
}

// tooLarge reports whether the storage of the server refused an object because of its
// size. API servers report that as an internal error, but it is about this one request: it
// fails again, and says nothing about the server.
func tooLarge(s metav1.Status) bool {
	return s.Code == http.StatusInternalServerError &&
		(strings.Contains(s.Message, "etcdserver: request is too large") || strings.Contains(s.Message, "trying to send message larger than max"))
}

// completed fills in the fields that the server left out of its status. The code is
// always the HTTP status.
func completed(s, generic metav1.Status) metav1.Status {
	s.Code = generic.Code
	s.Status = metav1.StatusFailure
	if s.Reason == "" {
		s.Reason = generic.Reason
	}
	if s.Message == "" {
		s.Message = generic.Message
	}
	return s
}

func cutText(s string) string {
	if runes := []rune(s); len(runes) >= maxErrorText {
		return string(runes[:maxErrorText-3]) + "..."
	}
	return s
}

// retryAfter parses the Retry-After header: seconds, whose fraction is dropped, or a
// date.
func retryAfter(h http.Header, now time.Time) (seconds int32, ok bool) {
	text := h.Get("Retry-After")
	if text == "" {
		return 0, false
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil && f >= 0 && f < math.MaxInt32 {
		return int32(f), true
	}
	if at, err := http.ParseTime(text); err == nil {
		wait := max(at.Sub(now), 0)
		return int32(min(math.Ceil(wait.Seconds()), math.MaxInt32)), true
	}
	return 0, false
}

// maxRetryAfter limits the pause that a server may request.
const maxRetryAfter = 5 * time.Minute

// RetryAfter returns the pause that the server requested with an error, at most 5
// minutes. 0 means that it requested none.
func RetryAfter(err error) time.Duration {
	if s, ok := Refused(err); ok && s.Details != nil {
		return min(time.Duration(s.Details.RetryAfterSeconds)*time.Second, maxRetryAfter)
	}
	return 0
}

// neverSent reports whether err occurred while connecting, when the request cannot have
// reached the server.
func neverSent(err error) bool {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return true
	}
	var op *net.OpError
	return errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect" || op.Op == "socks connect")
}
