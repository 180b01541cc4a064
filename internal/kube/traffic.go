package kube

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// TrafficLevel is the level of log lines about single requests. It is below DEBUG,
// as there are many of them: the flag --debug shows them, --verbose does not.
const TrafficLevel = slog.LevelDebug - 4

// traffic logs requests with method, path, code and duration. Bodies, queries and
// headers are never logged: they may have secrets.
type traffic struct {
	log          *slog.Logger
	method, path string
	began        time.Time
}

// logsTraffic reports whether requests are logged. Derived clients may log nowhere,
// so the client that they come from decides.
func (c *Client) logsTraffic(ctx context.Context) bool {
	return c.shared.opts.Log.Enabled(ctx, TrafficLevel)
}

func (c *Client) newTraffic(method, path string) *traffic {
	return &traffic{c.shared.opts.Log, method, path, time.Now()}
}

// request logs an attempt at its end, and a stream as soon as its response starts.
func (t *traffic) request(ctx context.Context, o outcome, stream bool) {
	attrs := []any{"method", t.method, "path", t.path}
	if o.code != 0 {
		attrs = append(attrs, "code", o.code)
	}
	attrs = append(attrs, "duration", time.Since(t.began))
	text := "API request."
	switch {
	case o.code == 0 && o.err != nil: // of the connection: it says nothing about the contents
		text, attrs = "API request without a response.", append(attrs, "error", o.err)
	case stream && o.err == nil:
		text = "API stream opened."
	}
	t.log.Log(ctx, TrafficLevel, text, attrs...)
}

// closing returns a function that logs the end of a stream, once.
func (t *traffic) closing() func() {
	opened := time.Now()
	return sync.OnceFunc(func() {
		t.log.Log(context.Background(), TrafficLevel, "API stream closed.", "method", t.method, "path", t.path, "duration", time.Since(opened))
	})
}

// closeLogged makes the end of a stream of another client visible.
func (t *traffic) closeLogged(resp *http.Response) {
	if _, both := resp.Body.(io.Writer); both {
		return // a connection that was taken over: its new owner needs all of its methods
	}
	resp.Body = &loggedBody{resp.Body, t.closing()}
}

type loggedBody struct {
	io.ReadCloser
	closed func()
}

func (b *loggedBody) Close() error {
	defer b.closed()
	return b.ReadCloser.Close()
}
