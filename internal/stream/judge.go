package stream

import (
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/kube"
)

// step is the next action of a stream after a list or watch has ended.
type step int

const (
	resume    step = iota // watch from the last version, or retry the same list
	relist                // drop the version and list
	listPages             // the server cannot stream lists: use pages from now on
)

// trouble is an ERROR event or a malformed event. The watch was open, and the same
// failure may repeat at the same version.
type trouble struct{ error }

func (t trouble) Unwrap() error { return t.error }

// maxStrikes is the number of failures at the same version after which the stream
// relists instead of resuming.
const maxStrikes = 2

// maxTorn is the number of connections that may break within the same event before that
// counts as trouble: the event itself may be the cause, for example its size.
const maxTorn = 5

// judge decides how to continue after a list or watch has ended. strikes is the number
// of troubles in a row at the same version, including this one.
func judge(err error, streamingList bool, strikes int) step {
	var odd trouble
	_, refused := kube.Refused(err)
	switch {
	case streamingList && refused && !errors.As(err, &odd) && cannotStream(err):
		return listPages
	case streamingList:
		return resume
	case versionIsUseless(err):
		return relist
	case strikes >= maxStrikes:
		return relist
	}
	return resume
}

// cannotStream reports whether the server rejects the parameters of a streamed list.
func cannotStream(err error) bool {
	switch s, _ := kube.Refused(err); s.Code {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return true
	}
	return false
}

// versionIsUseless reports whether the error would repeat for the same version: it is
// too old, or in the future (after a restore), or of a kind that was removed and
// perhaps added again.
func versionIsUseless(err error) bool {
	s, refused := kube.Refused(err)
	if !refused {
		return false
	}
	switch s.Code {
	case http.StatusGone, http.StatusNotFound, http.StatusBadRequest, http.StatusUnprocessableEntity:
		return true
	}
	return apierrors.IsGone(err) || apierrors.IsResourceExpired(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

// serverFailed reports whether another kind of list might avoid the error. Refusals and
// broken connections affect all lists.
func serverFailed(err error) bool {
	s, _ := kube.Refused(err)
	return s.Code >= 500
}

// pauses are the growing pauses of a stream. There is none after the first failure.
type pauses struct {
	backoff.Backoff
	jitter   func(time.Duration) time.Duration
	failures int
}

func (p *pauses) next() time.Duration {
	p.failures++
	return p.jitter(p.After(p.failures - 1))
}

func (p *pauses) reset() { p.failures = 0 }
