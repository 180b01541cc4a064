package kube

import (
	"errors"
	"net/http"
	"sync"
	"time"
)

// Outages limits log lines about a failing API server to one line per minute for each
// kind of failure, with the number of omitted failures. The kind is the HTTP status, or
// 0 if there was no response. Without it, every object being handled would log the same
// failure. A nil *Outages does not limit.
//
// It is safe for concurrent use. It has no goroutine: the count is logged with the
// first failure after the minute.
type Outages struct {
	mu    sync.Mutex
	kinds map[int]*failureKind // by HTTP status; 0 if there was no response
}

// failureKind is the log state of one kind of failure.
type failureKind struct {
	logged  time.Time // time of the last failure line
	omitted int       // failures since then
	over    time.Time // time of the last recovery line
}

// outageInterval is the interval of log lines about one kind of failure.
const outageInterval = time.Minute

// Failed records a failure. It reports whether the caller must log it, and how many
// failures were omitted since the last line. Errors that are not about the server as a
// whole are always logged; see [Unavailable].
func (o *Outages) Failed(err error) (log bool, omitted int) {
	if o == nil || !Unavailable(err) {
		return true, 0
	}
	return o.failed(codeOf(err))
}

func (o *Outages) failed(code int) (log bool, omitted int) {
	if o == nil {
		return true, 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.kinds == nil {
		o.kinds = map[int]*failureKind{}
	}
	kind := o.kinds[code]
	if kind == nil {
		kind = &failureKind{}
		o.kinds[code] = kind
	}
	if now := time.Now(); kind.logged.IsZero() || now.Sub(kind.logged) >= outageInterval {
		kind.logged, omitted, kind.omitted = now, kind.omitted, 0
		return true, omitted
	}
	kind.omitted++
	return false, 0
}

// Over records that an object recovered from the failure. It reports whether the caller
// must log that, which is once per minute for each kind of failure.
func (o *Outages) Over(err error) (log bool) {
	if o == nil || !Unavailable(err) {
		return true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	kind := o.kinds[codeOf(err)]
	if kind == nil {
		return true
	}
	now := time.Now()
	log = kind.over.IsZero() || now.Sub(kind.over) >= outageInterval
	if log {
		kind.over = now
	}
	return log
}

// codeOf returns the HTTP status that err is about, or 0 if there was no response.
func codeOf(err error) int {
	if status, refused := Refused(err); refused {
		return int(status.Code)
	}
	var unknown *UnknownOutcomeError
	if errors.As(err, &unknown) && unknown.Code/100 != http.StatusOK/100 {
		return unknown.Code
	}
	return 0
}
