package gopftest

import (
	"net/http"
	"time"
)

// handle serves a request through the faults that strike it, and logs it.
func (c *Cluster) handle(w http.ResponseWriter, r *http.Request) {
	x := &exchange{Cluster: c, r: r}
	var err error
	x.body, err = readBody(r)
	x.log = c.requests.add(x.request())
	x.w = &statusRecorder{ResponseWriter: w, log: x.log}
	if err != nil {
		x.fail(err)
		return
	}
	x.through(c.faults.onRequest(x.log.snapshot()))
}

// through serves the request through the faults that strike it.
func (x *exchange) through(strikes []strike) {
	if len(strikes) == 0 {
		x.serve()
		return
	}
	strikes[0].around(x, strikes[0].fault, func() { x.through(strikes[1:]) })
}

// request describes the request for the request log.
func (x *exchange) request() Request {
	rt, _ := parseRoute(x.r)
	return Request{
		Verb: rt.verb, Method: x.r.Method, Path: x.r.URL.RequestURI(),
		Group: rt.group, Version: rt.version, Resource: rt.resource, Subresource: rt.subresource,
		Namespace: rt.namespace, Name: rt.name,
		Header: x.r.Header.Clone(), Body: x.body, Time: time.Now(),
	}
}

// statusRecorder records the status code of the response in the request log.
type statusRecorder struct {
	http.ResponseWriter
	log *logged
}

// WriteHeader implements http.ResponseWriter.
func (w *statusRecorder) WriteHeader(code int) {
	w.log.answered(code)
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap lets http.ResponseController find the real one.
func (w *statusRecorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
