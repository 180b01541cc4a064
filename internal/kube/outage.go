package kube

import (
	"errors"
	"net/http"
	"sync"
	"time"
)

// Outages limits log lines about an API server that does not work: one line per
// minute for each kind of failure, with the number of failures in between. A kind
// is the code of the response, or that none came. Without it, every object that is
// being handled writes lines of its own. nil limits nothing.
//
// It is safe for concurrent use, and needs no goroutine: the count goes with the
// first failure after the minute.
type Outages struct {
	mu    sync.Mutex
	kinds map[int]*failureKind // by the code of the response; 0 if none came
}

// failureKind is one kind of failure.
type failureKind struct {
	logged  time.Time // the last line about it
	omitted int       // failures since then
	over    time.Time // the last line about its end
}

// outageInterval is the time between two lines about one kind of failure.
const outageInterval = time.Minute

// Failed notes a failure. It reports whether a line must be written about it, and
// how many failures were omitted since the last line. Errors that are not about
// the server as a whole always get a line; see [Unavailable].
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

// Over notes that an object got over the failure. It reports whether a line must be
// written about that: once per minute for each kind of failure.
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

// codeOf returns the code of the response that the error is about; 0 if none came.
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
