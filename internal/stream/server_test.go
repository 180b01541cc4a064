package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

var pods = kind.Info{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}

// server is an API server that follows a script, in virtual time.
type server struct {
	mu       sync.Mutex
	started  time.Time
	script   []answer // responses to lists and watches, in order; later watches stay silent
	probes   []answer // responses to probes
	requests []string
}

type answer func(*http.Request) (*http.Response, error)

func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	q := req.URL.Query()
	probe := q.Get("timeoutSeconds") == "1"
	what := "list"
	switch {
	case probe:
		what = "probe"
	case q.Get("sendInitialEvents") == "true":
		what = "watchlist"
	case q.Get("watch") == "true":
		what = "watch"
	}
	if rv := q.Get("resourceVersion"); rv != "" {
		what += " " + rv
	}
	if c := q.Get("continue"); c != "" {
		what += " " + c
	}
	if seconds := q.Get("timeoutSeconds"); seconds != "" && !probe {
		what += " for " + seconds
	}
	s.mu.Lock()
	s.requests = append(s.requests, fmt.Sprintf("%v %s", time.Since(s.started).Truncate(time.Millisecond), what))
	queue := &s.script
	if probe {
		queue = &s.probes
	}
	next := open()
	if probe {
		next = open(cut(time.Second, io.EOF))
	}
	if len(*queue) > 0 {
		next, *queue = (*queue)[0], (*queue)[1:]
	}
	s.mu.Unlock()
	return next(req)
}

// part is a piece of a response, sent after a delay.
type part struct {
	after time.Duration
	text  string
	err   error
}

func line(format string, args ...any) part  { return part{text: fmt.Sprintf(format, args...) + "\n"} }
func later(d time.Duration, p part) part    { p.after = d; return p }
func cut(after time.Duration, e error) part { return part{after: after, err: e} }

// open responds with the parts, followed by silence.
func open(parts ...part) answer {
	return func(req *http.Request) (*http.Response, error) {
		return respond(req, http.StatusOK, parts), nil
	}
}

// closed responds with the parts and a proper end.
func closed(parts ...part) answer { return open(append(parts, cut(0, io.EOF))...) }

func status(code int, reason string) answer {
	return func(req *http.Request) (*http.Response, error) {
		body := fmt.Sprintf(`{"kind":"Status","status":"Failure","code":%d,"reason":%q,"message":"no way"}`, code, reason)
		return respond(req, code, []part{{text: body}, cut(0, io.EOF)}), nil
	}
}

func tooMany(seconds int) answer {
	return func(req *http.Request) (*http.Response, error) {
		resp := respond(req, http.StatusTooManyRequests, []part{cut(0, io.EOF)})
		resp.Header.Set("Retry-After", strconv.Itoa(seconds))
		return resp, nil
	}
}

// future is the response to a version that the server does not have yet.
func future() answer {
	return func(req *http.Request) (*http.Response, error) {
		body := `{"kind":"Status","status":"Failure","code":504,"reason":"Timeout","message":"Timeout: Too large resource version: 9, current: 3",
			"details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1}}`
		return respond(req, 504, []part{{text: body}, cut(0, io.EOF)}), nil
	}
}

func broken(err error) answer {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

func list(rv, more string, items ...string) answer {
	return closed(line(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":%q,"continue":%q},"items":[%s]}`,
		rv, more, strings.Join(items, ",")))
}

func respond(req *http.Request, code int, parts []part) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{}, Request: req, Body: &body{ctx: req.Context(), parts: slices.Clone(parts)}}
}

type body struct {
	ctx   context.Context
	parts []part
}

func (b *body) Read(p []byte) (int, error) {
	if len(b.parts) == 0 {
		<-b.ctx.Done()
		return 0, b.ctx.Err()
	}
	next := &b.parts[0]
	if backoff.Sleep(b.ctx, next.after) != nil {
		return 0, b.ctx.Err()
	}
	next.after = 0
	if next.err != nil {
		return 0, next.err
	}
	n := copy(p, next.text)
	if next.text = next.text[n:]; next.text == "" {
		b.parts = b.parts[1:]
	}
	return n, nil
}

func (b *body) Close() error { return nil }

func pod(name, uid, rv string) string {
	return fmt.Sprintf(`{"metadata":{"namespace":"ns","name":%q,"uid":%q,"resourceVersion":%q}}`, name, uid, rv)
}

func event(typ kube.EventType, name, uid, rv string) part {
	return line(`{"type":%q,"object":%s}`, typ, pod(name, uid, rv))
}

func bookmark(rv string) part {
	return line(`{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":%q}}}`, rv)
}

func initialEnd(rv string) part {
	return line(`{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":%q,"annotations":{"k8s.io/initial-events-end":"true"}}}}`, rv)
}

func errorEvent(code int, reason string) part {
	return line(`{"type":"ERROR","object":{"kind":"Status","code":%d,"reason":%q,"message":"no way"}}`, code, reason)
}

// observed is the result of a run.
type observed struct {
	events   []string // "DELETED a/1@5 missed"
	times    []time.Duration
	requests []string
	log      []string
	states   []string
}

// observe runs a stream for some virtual time against a script. It passes the events to
// the receivers as well.
func observe(t *testing.T, d time.Duration, s *server, adjust func(*Config), receivers ...func(Event)) (o observed) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s.started = time.Now()
		log := &logLines{}
		ko := kube.DefaultOptions()
		ko.Log = slog.New(log)
		client, err := kube.NewClient(&rest.Config{Host: "http://server", Transport: s}, ko)
		if err != nil {
			t.Fatal(err)
		}
		cfg := DefaultConfig(pods, "ns")
		cfg.Log = slog.New(log)
		cfg.Status = func(s Status) {
			text := string(s.State)
			if s.Err != nil {
				text += ": " + errorKind(s.Err)
			}
			o.states = append(o.states, text)
		}
		if adjust != nil {
			adjust(&cfg)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), d, errTestOver)
		defer cancel()
		stream := New(client, cfg)
		err = stream.Run(ctx, func(e Event) {
			o.events = append(o.events, text(e))
			o.times = append(o.times, time.Since(s.started))
			for _, receive := range receivers {
				receive(e)
			}
		})
		if !errors.Is(err, errTestOver) {
			t.Errorf("Run returned %v", err)
		}
		o.requests, o.log = s.requests, log.lines
	})
	return o
}

func withoutProbes(requests []string) []string {
	return slices.DeleteFunc(slices.Clone(requests), func(r string) bool { return strings.Contains(r, "probe") })
}

var errTestOver = errors.New("the test is over")

func text(e Event) string {
	s := e.Type.String()
	if e.Body != nil {
		s += fmt.Sprintf(" %s/%s@%s", e.Body.Name, e.Body.UID, e.Body.ResourceVersion)
	}
	if e.Missed {
		s += " missed"
	}
	return s
}

// known returns the identities of objects given as "name/uid".
func known(objects ...string) []object.Identity {
	var ids []object.Identity
	for _, o := range objects {
		n, uid, _ := strings.Cut(o, "/")
		ids = append(ids, object.Identity{Namespace: "ns", Name: n, UID: uid})
	}
	return ids
}

// logLines collects log lines at INFO and above.
type logLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *logLines) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }
func (l *logLines) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l *logLines) WithGroup(string) slog.Handler                    { return l }

func (l *logLines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, r.Level.String()+" "+r.Message)
	return nil
}
