package gopftest

import (
	"bytes"
	"context"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Effect is what a [Fault] does to the requests that it strikes.
type Effect struct {
	// around serves a request, by calling serve at most once.
	around func(x *exchange, f *Fault, serve func())
	// pass sends an event, by calling send any number of times.
	pass func(ctx context.Context, st *stream, f *Fault, event frame, send func(frame) error) error
	// freeze says that bookmarks are withheld with the events.
	freeze bool
}

// Fail answers with an error of the API, of that HTTP status, without doing what
// was asked.
func Fail(code int) Effect {
	return FailWith(apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", "the fault of a test", 0, false))
}

// FailWith answers with that error, as made by k8s.io/apimachinery/pkg/api/errors,
// without doing what was asked.
func FailWith(err error) Effect {
	return Effect{around: func(x *exchange, _ *Fault, _ func()) { x.fail(err) }}
}

// FailInStream lets a watch begin, and tells the error as its only event.
func FailInStream(err error) Effect {
	return Effect{around: func(x *exchange, _ *Fault, _ func()) {
		x.w.Header().Set("Content-Type", mediaJSON)
		x.w.WriteHeader(http.StatusOK)
		_, _ = x.w.Write(frame{kind: "ERROR", object: encode(statusOf(err))}.line())
	}}
}

// Drop breaks the connection without doing what was asked.
func Drop() Effect {
	return Effect{around: func(*exchange, *Fault, func()) { panic(http.ErrAbortHandler) }}
}

// LoseAnswer does what was asked, and then breaks the connection. It does nothing
// to watches.
func LoseAnswer() Effect {
	return afterwards(func(*exchange, *Fault, *held) { panic(http.ErrAbortHandler) })
}

// Hold lets requests wait before they are served.
func Hold(d time.Duration) Effect {
	return Effect{around: func(x *exchange, f *Fault, serve func()) {
		f.mustWait(x, time.After(d))
		serve()
	}}
}

// HoldAnswer does what was asked, but answers later. It does nothing to watches.
func HoldAnswer(d time.Duration) Effect {
	return afterwards(func(x *exchange, f *Fault, h *held) {
		f.mustWait(x, time.After(d))
		x.release(h)
	})
}

// Hang lets requests wait, unserved, until the fault is stopped or its time is
// over.
func Hang() Effect {
	return Effect{around: func(x *exchange, f *Fault, serve func()) {
		f.mustWait(x, f.end())
		serve()
	}}
}

// HangAnswer does what was asked, but does not answer until the fault is stopped
// or its time is over. It does nothing to watches.
func HangAnswer() Effect {
	return afterwards(func(x *exchange, f *Fault, h *held) {
		f.mustWait(x, f.end())
		x.release(h)
	})
}

// Garble does what was asked, but cuts the answer's JSON in the middle. It does
// nothing to watches.
func Garble() Effect {
	return afterwards(func(x *exchange, _ *Fault, h *held) {
		h.body.Truncate(h.body.Len() / 2)
		x.release(h)
	})
}

// Before calls fn before the request is served; the client waits meanwhile.
func Before(fn func(Request)) Effect {
	return Effect{around: func(x *exchange, _ *Fault, serve func()) {
		fn(x.log.snapshot())
		serve()
	}}
}

// After calls fn when the request is served and nobody knows it yet, but for
// watchers; the client waits meanwhile. Request.Code is what the answer will be.
// It does nothing to watches.
func After(fn func(Request)) Effect {
	return Effect{around: func(x *exchange, _ *Fault, serve func()) {
		called := false
		call := func(code int) {
			if !called {
				called = true
				r := x.log.snapshot()
				r.Code = code
				fn(r)
			}
		}
		defer call(0) // an inner effect may break the connection
		if x.log.snapshot().Verb == "watch" {
			called = true
			serve()
			return
		}
		h := x.hold(serve)
		call(h.code)
		x.release(h)
	}}
}

// mustWait waits, and ends the request if there is nobody to answer any more.
func (f *Fault) mustWait(x *exchange, until <-chan time.Time) {
	if !f.wait(x.r.Context(), x.Cluster, until) {
		panic(http.ErrAbortHandler)
	}
}

// afterwards makes an effect on the answer of a request that is served.
func afterwards(then func(x *exchange, f *Fault, h *held)) Effect {
	return Effect{around: func(x *exchange, f *Fault, serve func()) {
		if x.log.snapshot().Verb == "watch" {
			serve()
			return
		}
		then(x, f, x.hold(serve))
	}}
}

// held is an answer that is kept back.
type held struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (h *held) Header() http.Header { return h.header }

// WriteHeader implements http.ResponseWriter.
func (h *held) WriteHeader(code int) {
	if h.code == 0 {
		h.code = code
	}
}

// Write implements http.ResponseWriter.
func (h *held) Write(b []byte) (int, error) {
	h.WriteHeader(http.StatusOK)
	return h.body.Write(b)
}

// hold serves the request, keeping the answer back.
func (x *exchange) hold(serve func()) *held {
	outer := x.w
	h := &held{header: http.Header{}}
	x.w = h
	serve()
	x.w = outer
	return h
}

// release sends an answer that was kept back.
func (x *exchange) release(h *held) {
	for name, values := range h.header {
		x.w.Header()[name] = values
	}
	x.w.WriteHeader(h.code)
	_, _ = x.w.Write(h.body.Bytes())
}
