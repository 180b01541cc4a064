package gopftest

import (
	"bytes"
	"context"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Effect changes how the cluster serves matching requests, or how it sends the events of
// matching watches. Effects are the arguments of [Cluster.Fault].
type Effect struct {
	// around serves a request. It calls serve at most once.
	around func(x *exchange, f *Fault, serve func())
	// pass sends an event. It calls send any number of times.
	pass func(ctx context.Context, st *stream, f *Fault, event frame, send func(frame) error) error
	// freeze also withholds bookmarks.
	freeze bool
}

// Fail responds with an API error of the given HTTP status. The request is not executed.
func Fail(code int) Effect {
	return FailWith(apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", "the fault of a test", 0, false))
}

// FailWith responds with the given error, usually one made by the package
// k8s.io/apimachinery/pkg/api/errors. The request is not executed.
func FailWith(err error) Effect {
	return Effect{around: func(x *exchange, _ *Fault, _ func()) { x.fail(err) }}
}

// FailInStream accepts a watch, and sends the error as its only event.
func FailInStream(err error) Effect {
	return Effect{around: func(x *exchange, _ *Fault, _ func()) {
		x.w.Header().Set("Content-Type", mediaJSON)
		x.w.WriteHeader(http.StatusOK)
		_, _ = x.w.Write(frame{kind: "ERROR", object: encode(statusOf(err))}.line())
	}}
}

// Drop breaks the connection. The request is not executed.
func Drop() Effect {
	return Effect{around: func(*exchange, *Fault, func()) { panic(http.ErrAbortHandler) }}
}

// LoseAnswer executes the request, and breaks the connection before the response.
// Watches are not affected.
func LoseAnswer() Effect {
	return afterwards(func(*exchange, *Fault, *held) { panic(http.ErrAbortHandler) })
}

// Hold delays requests by d before they are executed.
func Hold(d time.Duration) Effect {
	return Effect{around: func(x *exchange, f *Fault, serve func()) {
		f.mustWait(x, time.After(d))
		serve()
	}}
}

// HoldAnswer executes the request, and delays the response by d. Watches are not affected.
func HoldAnswer(d time.Duration) Effect {
	return afterwards(func(x *exchange, f *Fault, h *held) {
		f.mustWait(x, time.After(d))
		x.release(h)
	})
}

// Hang blocks requests before they are executed, until the fault is stopped or expires.
func Hang() Effect {
	return Effect{around: func(x *exchange, f *Fault, serve func()) {
		f.mustWait(x, f.end())
		serve()
	}}
}

// HangAnswer executes the request, and blocks the response until the fault is stopped or
// expires. Watches are not affected.
func HangAnswer() Effect {
	return afterwards(func(x *exchange, f *Fault, h *held) {
		f.mustWait(x, f.end())
		x.release(h)
	})
}

// Garble executes the request, and cuts the JSON of the response in the middle. Watches
// are not affected.
func Garble() Effect {
	return afterwards(func(x *exchange, _ *Fault, h *held) {
		h.body.Truncate(h.body.Len() / 2)
		x.release(h)
	})
}

// Before calls fn before a request is executed. The client waits until fn returns.
func Before(fn func(Request)) Effect {
	return Effect{around: func(x *exchange, _ *Fault, serve func()) {
		fn(x.log.snapshot())
		serve()
	}}
}

// After calls fn after a request is executed and before the client gets the response.
// Watchers may already have received the event. Request.Code is the status code of the
// response. Watches are not affected.
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

// mustWait waits. It aborts the request if the client or the cluster is gone.
func (f *Fault) mustWait(x *exchange, until <-chan time.Time) {
	if !f.wait(x.r.Context(), x.Cluster, until) {
		panic(http.ErrAbortHandler)
	}
}

// afterwards returns an effect on the response of an executed request.
func afterwards(then func(x *exchange, f *Fault, h *held)) Effect {
	return Effect{around: func(x *exchange, f *Fault, serve func()) {
		if x.log.snapshot().Verb == "watch" {
			serve()
			return
		}
		then(x, f, x.hold(serve))
	}}
}

// held is a response that is kept back.
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

// hold executes the request and keeps the response back.
func (x *exchange) hold(serve func()) *held {
	outer := x.w
	h := &held{header: http.Header{}}
	x.w = h
	serve()
	x.w = outer
	return h
}

// release sends a response that was kept back.
func (x *exchange) release(h *held) {
	for name, values := range h.header {
		x.w.Header()[name] = values
	}
	x.w.WriteHeader(h.code)
	_, _ = x.w.Write(h.body.Bytes())
}
