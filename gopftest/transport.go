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

// errClosed is the error for clients that are used after the end of the test.
var errClosed = errors.New("gopftest: the cluster is closed")

// transport serves requests in the same process, without sockets. A goroutine in a
// testing/synctest bubble that waits for a response or for an event is then durably
// blocked, so the virtual clock can advance.
type transport struct {
	cluster *Cluster
	handle  http.HandlerFunc
}

// RoundTrip implements http.RoundTripper. It returns when the headers are written.
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

// takeBody reads the body immediately: the client may reuse it after RoundTrip.
func takeBody(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	defer req.Body.Close()
	return io.ReadAll(req.Body)
}

// answer is the server side of a response. Writes before the first flush are buffered,
// as on a real connection. A response that is never flushed is complete in the buffer,
// so its handler does not wait for the reader.
type answer struct {
	req    *http.Request
	cancel context.CancelFunc
	header http.Header
	ready  chan struct{} // closed when the status and the headers are final

	mu       sync.Mutex
	code     int
	sent     http.Header // the headers when they became final
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

// FlushError implements an interface of http.ResponseController.
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

// SetWriteDeadline implements an interface of http.ResponseController. A deadline in the
// past aborts writes that wait for the reader. Future deadlines are not supported.
func (a *answer) SetWriteDeadline(t time.Time) error {
	if t.After(time.Now()) {
		return http.ErrNotSupported
	}
	if err := a.req.Context().Err(); err != nil {
		return a.writer.CloseWithError(err)
	}
	return a.writer.CloseWithError(io.ErrUnexpectedEOF)
}

// finish completes the response when the handler has returned, or has aborted it with
// the panic of net/http.
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

// response returns the client side. It must not be called before ready is closed.
func (a *answer) response() (*http.Response, error) {
	if a.finished && a.aborted {
		return nil, io.EOF // as for a connection that is closed without a response
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

// streamBody is the body of a response that is still being written.
type streamBody struct{ a *answer }

// Read implements io.Reader.
func (b streamBody) Read(p []byte) (int, error) { return b.a.reader.Read(p) }

// Close implements io.Closer. It cancels the request.
func (b streamBody) Close() error {
	defer b.a.cancel() // last, to keep the reason of the closing
	return b.a.writer.CloseWithError(http.ErrBodyReadAfterClose)
}
