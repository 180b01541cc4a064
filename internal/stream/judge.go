package stream

import (
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf/internal/kube"
)

// step is what a stream does after something has ended.
type step int

const (
	resume    step = iota // watch from the last version, or try the same list again
	relist                // forget the version
	listPages             // the server cannot stream lists: never ask for it again
)

// trouble is an ERROR event, or an event that is none: the watch was opened
// and then went wrong in a way that may repeat itself at the same place.
type trouble struct{ error }

func (t trouble) Unwrap() error { return t.error }

// maxStrikes is how often trouble at the same version is answered by resuming
// there.
const maxStrikes = 2

// maxTorn is how many connections may break within the same event until that is
// trouble, too: something may be wrong with it, as its size.
const maxTorn = 5

// judge decides how to go on after an end. Strikes count the trouble in a row
// since the version has last changed, this one included.
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

// cannotStream tells a server that does not know the parameters, or forbids
// them.
func cannotStream(err error) bool {
	switch s, _ := kube.Refused(err); s.Code {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return true
	}
	return false
}

// versionIsUseless tells errors that would come again for the same version:
// it is too old, or in the future (after a restore of the cluster's data), or
// it belongs to a kind that was removed, and perhaps added again.
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

// serverFailed tells errors of which another kind of list might be spared.
// Nobody is spared a refusal or a broken connection.
func serverFailed(err error) bool {
	s, _ := kube.Refused(err)
	return s.Code >= 500
}

// backoff makes pauses that grow: none, the base, twice the base, …, the most.
type backoff struct {
	base, most time.Duration
	jitter     func(time.Duration) time.Duration
	attempts   int
}

func (b *backoff) next() time.Duration {
	b.attempts++
	if b.attempts == 1 || b.base <= 0 {
		return 0
	}
	pause := b.most
	if doublings := b.attempts - 2; doublings < 30 {
		pause = min(b.base<<doublings, b.most)
	}
	return b.jitter(pause)
}

func (b *backoff) reset() { b.attempts = 0 }
