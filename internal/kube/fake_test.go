package kube

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/kind"
)

var (
	pods     = kind.Info{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}
	examples = kind.Info{Group: "kopf.dev", Version: "v1", Plural: "kopfexamples", Kind: "KopfExample", Namespaced: true}
	nodes    = kind.Info{Version: "v1", Plural: "nodes", Kind: "Node"}
)

// fake responds to requests by a script. It repeats the last response.
type fake struct {
	mu       sync.Mutex
	started  time.Time
	script   []scripted
	requests []string // "1s GET /path?query"
	bodies   []string
}

type scripted func(*http.Request) (*http.Response, error)

func (f *fake) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
	}
	f.mu.Lock()
	f.requests = append(f.requests, fmt.Sprintf("%v %s %s", time.Since(f.started), req.Method, req.URL.RequestURI()))
	f.bodies = append(f.bodies, string(body))
	next := f.script[0]
	if len(f.script) > 1 {
		f.script = f.script[1:]
	}
	f.mu.Unlock()
	return next(req)
}

func (f *fake) times() (times []string) {
	for _, r := range f.requests {
		at, _, _ := strings.Cut(r, " ")
		times = append(times, at)
	}
	return times
}

// client returns a client of the script, and its log.
func (f *fake) client(t testing.TB, adjust ...func(*Options)) (*Client, *logLines) {
	t.Helper()
	f.started = time.Now()
	log := &logLines{}
	o := DefaultOptions()
	o.Log = slog.New(log)
	for _, a := range adjust {
		a(&o)
	}
	c, err := NewClient(&rest.Config{Host: "https://server/base/", Transport: f}, o)
	if err != nil {
		t.Fatal(err)
	}
	return c, log
}

func answers(a ...scripted) *fake { return &fake{script: a} }

func reply(code int, body string, header ...string) scripted {
	return func(req *http.Request) (*http.Response, error) {
		return respond(req, code, strings.NewReader(body), header...), nil
	}
}

func respond(req *http.Request, code int, body io.Reader, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: code, Header: h, Body: io.NopCloser(body), Request: req}
}

func ok(body string) scripted { return reply(http.StatusOK, body) }

func refusal(code int, reason string) scripted {
	return reply(code, fmt.Sprintf(`{"kind":"Status","status":"Failure","code":%d,"reason":%q,"message":"no way"}`, code, reason))
}

// cutShort breaks the connection within the response.
func cutShort(body string) scripted {
	return func(req *http.Request) (*http.Response, error) {
		return respond(req, http.StatusOK, io.MultiReader(strings.NewReader(body), failing{syscall.ECONNRESET})), nil
	}
}

type failing struct{ err error }

var quiet = slog.New(slog.DiscardHandler)

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func breaks(err error) scripted {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

var (
	errDial  = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	errReset = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
)

// never does not respond.
func never(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, req.Context().Err()
}

const onePod = `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"ns","name":"a","uid":"1","resourceVersion":"5"}}`

var podA = Target{Info: pods, Namespace: "ns", Name: "a"}

// logLines collects log lines: those at INFO and above, and failed attempts at any level.
type logLines struct {
	mu    sync.Mutex
	lines []string // at INFO and above
	all   []string // failed attempts
	last  map[string]slog.Value
}

func (l *logLines) Enabled(context.Context, slog.Level) bool { return true }
func (l *logLines) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logLines) WithGroup(string) slog.Handler            { return l }

func (l *logLines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if strings.Contains(r.Message, " failed; ") {
		l.all = append(l.all, r.Message)
	}
	if r.Level < slog.LevelInfo {
		return nil
	}
	l.lines = append(l.lines, r.Level.String()+" "+r.Message)
	l.last = map[string]slog.Value{}
	r.Attrs(func(a slog.Attr) bool { l.last[a.Key] = a.Value; return true })
	return nil
}
