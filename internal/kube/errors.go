package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UnknownOutcomeError says that a write was sent and may have been applied,
// but that its answer was lost, cut or unreadable. It is not retried here: the
// caller must read the object and recognise its own effect.
type UnknownOutcomeError struct {
	Code int // of the answer; 0 if none came. With 2xx the write was applied
	Err  error
}

func (e *UnknownOutcomeError) Error() string {
	if e.Code/100 == 2 {
		return fmt.Sprintf("the write was applied, but its answer could not be read: %v", e.Err)
	}
	return fmt.Sprintf("the write may have been applied or not: %v", e.Err)
}

func (e *UnknownOutcomeError) Unwrap() error { return e.Err }

// UnreachableError says that no answer came from the server.
type UnreachableError struct {
	Host string
	Err  error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the API server %s cannot be reached: %v", e.Host, e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// MalformedError says that the server sent something that is not what was
// asked for.
type MalformedError struct{ Err error }

func (e *MalformedError) Error() string { return fmt.Sprintf("malformed answer: %v", e.Err) }
func (e *MalformedError) Unwrap() error { return e.Err }

// TimeoutError says that the server was silent for too long.
type TimeoutError struct{ After time.Duration }

func (e *TimeoutError) Error() string { return fmt.Sprintf("no answer within %v", e.After) }

// Timeout makes it one of Go's timeout errors.
func (e *TimeoutError) Timeout() bool { return true }

// Refused is the status that the server answered with, if it was an error of
// that kind and not one of the connection.
func Refused(err error) (metav1.Status, bool) {
	var s *apierrors.StatusError
	if errors.As(err, &s) {
		return s.ErrStatus, true
	}
	return metav1.Status{}, false
}

// Unavailable tells that the server, or the way to it, does not work now: what
// was asked for has nothing to do with it.
func Unavailable(err error) bool {
	if s, refused := Refused(err); refused {
		return s.Code == http.StatusTooManyRequests || s.Code >= 500
	}
	var unreachable *UnreachableError
	var unknown *UnknownOutcomeError
	return errors.As(err, &unreachable) || errors.As(err, &unknown)
}

const (
	maxErrorBody = 64 << 10
	maxErrorText = 256
)

// statusError makes an error of an answer that is none of success.
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
	return generic
}

// completed fills in what a server left out of its status. The code is always
// that of the answer.
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

// retryAfter reads the header of that name: whole seconds, fractions of which
// are dropped, or a date.
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

// maxRetryAfter is the longest pause that a server may ask for.
const maxRetryAfter = 5 * time.Minute

// RetryAfter returns the pause that the server asked for with an error, at most 5
// minutes. 0 means that it asked for none.
func RetryAfter(err error) time.Duration {
	if s, ok := Refused(err); ok && s.Details != nil {
		return min(time.Duration(s.Details.RetryAfterSeconds)*time.Second, maxRetryAfter)
	}
	return 0
}

// neverSent tells errors of establishing a connection: the request cannot
// have reached the server.
func neverSent(err error) bool {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return true
	}
	var op *net.OpError
	return errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect" || op.Op == "socks connect")
}
