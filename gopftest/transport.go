package gopftest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// errClosed is what clients get that outlive the test's cluster.
var errClosed = errors.New("gopftest: the cluster is closed")

// transport serves requests in the same process, without sockets: whoever waits
// for a request or for the next event of a stream then waits for something inside
// the bubble of testing/synctest, so that the clock can move on.
type transport struct {
	cluster *Cluster
	handle  http.HandlerFunc
}

// RoundTrip implements http.RoundTripper. It returns when the headers are there.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := takeBody(req)
	if err == nil {
		err = req.Context().Err()
	}
	if err != nil {
		return nil, err
	}

	ctx, cancel := context.WithCancel(req.Context())
	a := newAnswer(req, cancel)
	served := req.Clone(ctx)
	served.Body = io.NopCloser(bytes.NewReader(body))
	served.RequestURI = req.URL.RequestURI()
	served.Host = req.URL.Host
	if !t.cluster.begin() {
		cancel()
		return nil, errClosed
	}
	go func() {
		defer t.cluster.end()
		defer a.finish()
		t.handle(a, served)
	}()

	select {
	case <-a.ready:
	case <-req.Context().Done():
		cancel()
		return nil, req.Context().Err()
	}
	return a.response()
}

// takeBody reads the body at once: the client may use it again after RoundTrip.
func takeBody(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	defer req.Body.Close()
	return io.ReadAll(req.Body)
}

// answer is the server's side of a response. What is written before the first
// flush is kept back, as a real connection does; a response that is never flushed
// is whole, and its server needs not wait for the reader.
type answer struct {
	req    *http.Request
	cancel context.CancelFunc
	header http.Header
	ready  chan struct{} // closed when status and headers are settled

	mu       sync.Mutex
	code     int
	sent     http.Header // the headers as they were when settled
	buffer   bytes.Buffer
	flushed  bool
	aborted  bool
	finished bool

	reader *io.PipeReader
	writer *io.PipeWriter
	unhook func() bool
}

func newAnswer(req *http.Request, cancel context.CancelFunc) *answer {
	a := &answer{req: req, cancel: cancel, header: http.Header{}, ready: make(chan struct{})}
	a.reader, a.writer = io.Pipe()
	a.unhook = context.AfterFunc(req.Context(), func() { a.writer.CloseWithError(req.Context().Err()) })
	return a
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(code int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.code == 0 {
		a.code, a.sent = code, a.header.Clone()
	}
}

// Write implements http.ResponseWriter.
func (a *answer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	a.mu.Lock()
	if !a.flushed {
		defer a.mu.Unlock()
		return a.buffer.Write(b)
	}
	a.mu.Unlock()
	return a.writer.Write(b)
}

// FlushError implements what http.ResponseController looks for.
func (a *answer) FlushError() error {
	a.WriteHeader(http.StatusOK)
	a.mu.Lock()
	first := !a.flushed
	a.flushed = true
	pending := a.buffer.Bytes()
	a.mu.Unlock()
	if !first {
		return nil
	}
	close(a.ready)
	if len(pending) == 0 {
		return nil
	}
	_, err := a.writer.Write(pending)
	return err
}

// SetWriteDeadline implements what http.ResponseController looks for: a time that
// is over ends writes that wait for the reader. No other is asked for here.
func (a *answer) SetWriteDeadline(t time.Time) error {
	if t.After(time.Now()) {
		return http.ErrNotSupported
	}
	if err := a.req.Context().Err(); err != nil {
		return a.writer.CloseWithError(err)
	}
	return a.writer.CloseWithError(io.ErrUnexpectedEOF)
}

// finish ends the response when the handler has returned, or has aborted it by
// panicking as net/http allows.
func (a *answer) finish() {
	if p := recover(); p != nil {
		if p != http.ErrAbortHandler { //nolint:errorlint // a panic, compared as net/http does
			panic(p)
		}
		a.aborted = true
	}
	a.unhook()
	switch err := a.req.Context().Err(); {
	case err != nil:
		a.writer.CloseWithError(err)
	case a.aborted:
		a.writer.CloseWithError(io.ErrUnexpectedEOF)
	default:
		_ = a.writer.Close() // a pipe always closes
	}
	if !a.flushed {
		a.WriteHeader(http.StatusOK)
		a.finished = true
		close(a.ready)
	}
	a.cancel()
}

// response is the client's side; it must not be called before ready is closed.
func (a *answer) response() (*http.Response, error) {
	if a.finished && a.aborted {
		return nil, io.EOF // what a client sees of a connection closed without an answer
	}
	resp := &http.Response{
		Status: strconv.Itoa(a.code) + " " + http.StatusText(a.code), StatusCode: a.code,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.sent, Request: a.req, ContentLength: -1,
	}
	if a.finished {
		resp.ContentLength = int64(a.buffer.Len())
		resp.Body = io.NopCloser(bytes.NewReader(a.buffer.Bytes()))
		return resp, nil
	}
	resp.Body = streamBody{a}
	return resp, nil
}

// streamBody is the body of a response that goes on.
type streamBody struct{ a *answer }

// Read implements io.Reader.
func (b streamBody) Read(p []byte) (int, error) { return b.a.reader.Read(p) }

// Close implements io.Closer. It tells the server that the client has enough.
func (b streamBody) Close() error {
	defer b.a.cancel() // after the reason is settled
	return b.a.writer.CloseWithError(http.ErrBodyReadAfterClose)
}
