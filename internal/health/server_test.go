package health_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/internal/health"
)

// state is a snapshot that tests can change.
type state struct {
	mu sync.Mutex
	is health.Snapshot
}

func (s *state) get() health.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	is := s.is
	is.Answered = time.Now()
	return is
}

func (s *state) change(f func(*health.Snapshot)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.is)
}

func started() *state { return &state{is: health.Snapshot{Started: true}} }

// run serves on free ports until the test ends.
func run(t *testing.T, c health.Config) health.Addresses {
	t.Helper()
	s, err := health.Listen(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); done.Wait() })
	return s.Addresses()
}

// answer is the relevant part of a response.
type answer struct {
	Code int
	Type string
	Body string
}

func ask(t *testing.T, method, url string, header ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header.Get("Content-Type"), string(body)}
}

func get(t *testing.T, url string, header ...string) answer {
	t.Helper()
	return ask(t, http.MethodGet, url, header...)
}

// try sends a request to a server that may be stopping, and ignores the result.
func try(t *testing.T, url string) {
	req := must(http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if resp, err := client.Do(req); err == nil {
		resp.Body.Close()
	}
}

const (
	plain  = "text/plain; charset=utf-8"
	asJSON = "application/json; charset=utf-8"
)

func TestLongHeadersAreRefused(t *testing.T) {
	c := health.DefaultConfig()
	c.Health, c.Snapshot = "localhost:0", started().get
	url := "http://" + run(t, c).Health + "/livez"
	for size, want := range map[int]int{3000: http.StatusOK, 9000: http.StatusRequestHeaderFieldsTooLarge} {
		if got := get(t, url, "X", strings.Repeat("x", size)).Code; got != want {
			t.Errorf("%d bytes: got %d, want %d", size, got, want)
		}
	}
}

func TestLivezAndReadyz(t *testing.T) {
	s := started()
	c := health.DefaultConfig()
	c.Health, c.Snapshot = "localhost:0", s.get
	base := "http://" + run(t, c).Health

	is := func(path string, want answer, header ...string) {
		t.Helper()
		if diff := cmp.Diff(want, get(t, base+path, header...)); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
	is("/livez", answer{200, plain, "alive\n"})
	is("/readyz", answer{200, plain, "ready\n"})
	is("/", answer{404, plain, "not found\n"})
	is("/livez/", answer{404, plain, "not found\n"})
	is("//livez", answer{404, plain, "not found\n"})
	is("/metrics", answer{404, plain, "not found\n"})
	is("/debug/pprof/", answer{404, plain, "not found\n"})
	if got := ask(t, http.MethodHead, base+"/livez"); got != (answer{200, plain, ""}) {
		t.Errorf("HEAD: %v", got)
	}
	if got := ask(t, http.MethodPost, base+"/livez"); got.Code != 405 {
		t.Errorf("POST: %v", got)
	}

	s.change(func(s *health.Snapshot) { s.Problems = []string{"There is no resource foos"} })
	s.change(func(s *health.Snapshot) { s.Idle = "paused by xyz" })
	is("/readyz", answer{200, plain, "ready\nwarning: There is no resource foos\nnote: The operator is idle on purpose: paused by xyz.\n"})

	s.change(func(s *health.Snapshot) { s.Overdue, s.Started = time.Hour, false })
	is("/livez", answer{503, plain, `not alive
Retries and timers are overdue by 1h: the alarm clock is stuck.
not ready: The operator is still starting.
warning: There is no resource foos
note: The operator is idle on purpose: paused by xyz.
`})
	is("/readyz?verbose", answer{503, plain, `not ready
The operator is still starting.
not alive: Retries and timers are overdue by 1h: the alarm clock is stuck.
warning: There is no resource foos
note: The operator is idle on purpose: paused by xyz.

All checks:
[unready] start: The operator is still starting.
[note] idleness: The operator is idle on purpose: paused by xyz.
[fine] credentials: The credentials are not rejected.
[fine] api: The API server responded less than a second ago.
[dead] alarms: Retries and timers are overdue by 1h: the alarm clock is stuck.
[warning] declarations: There is no resource foos
`})

	want := `{"ok":false,"started":false,` +
		`"live":{"ok":false,"reasons":["Retries and timers are overdue by 1h: the alarm clock is stuck."]},` +
		`"ready":{"ok":false,"reasons":["The operator is still starting."]},` +
		`"warnings":["There is no resource foos"],` +
		`"notes":["The operator is idle on purpose: paused by xyz."]}`
	is("/readyz?format=json", answer{503, asJSON, want})
	is("/livez", answer{503, asJSON, want}, "Accept", "text/html, application/json;q=0.9")
	var verbose struct{ Findings []health.Finding }
	if err := json.Unmarshal([]byte(get(t, base+"/livez?format=json&verbose").Body), &verbose); err != nil || len(verbose.Findings) != 6 {
		t.Errorf("%v, %v", verbose, err)
	}
	s.change(func(s *health.Snapshot) { *s = health.Snapshot{Started: true} })
	is("/livez?format=json", answer{200, asJSON,
		`{"ok":true,"started":true,"live":{"ok":true,"reasons":[]},"ready":{"ok":true,"reasons":[]},"warnings":[],"notes":[]}`})
}

func TestProbesAreServedOnlyAtTheirPath(t *testing.T) {
	s := started()
	c := health.DefaultConfig()
	c.Liveness, c.Snapshot = "http://localhost:0/healthz", s.get
	c.Probes = func(context.Context) (map[string]any, error) {
		var none *int
		return map[string]any{"now": "12:00", "count": 3, "none": nil, "typed-none": none, "zero": 0}, nil
	}
	url := run(t, c).Liveness
	want := answer{200, asJSON, `{"count":3,"now":"12:00","zero":0}`}
	if diff := cmp.Diff(want, get(t, url)); diff != "" {
		t.Error(diff)
	}
	for path, code := range map[string]int{"/": 404, "/x": 404, "?q=1": 200, "/../healthz": 404} {
		if got := get(t, url+path).Code; got != code {
			t.Errorf("%s: %d", url+path, got)
		}
	}
	for method, code := range map[string]int{"HEAD": 200, "POST": 405, "DELETE": 405, "OPTIONS": 405} {
		if got := ask(t, method, url).Code; got != code {
			t.Errorf("%s: %d", method, got)
		}
	}

	s.change(func(s *health.Snapshot) { s.Overdue = time.Hour })
	want = answer{503, plain, "not alive\nRetries and timers are overdue by 1h: the alarm clock is stuck.\n"}
	if diff := cmp.Diff(want, get(t, url)); diff != "" {
		t.Error(diff)
	}
	s.change(func(s *health.Snapshot) { s.Started, s.Starting = false, "waiting" })
	want = answer{503, plain, "not started\nThe operator is still starting: waiting.\n"}
	if diff := cmp.Diff(want, get(t, url)); diff != "" {
		t.Error(diff)
	}
}

func TestWithoutProbesTheResponseIsAnEmptyObject(t *testing.T) {
	c := health.DefaultConfig()
	c.Liveness, c.Snapshot = "http://:0", started().get
	url := run(t, c).Liveness
	if !strings.HasPrefix(url, "http://127.0.0.1:") && !strings.HasPrefix(url, "http://[::1]:") || !strings.HasSuffix(url, "/") {
		t.Error(url)
	}
	if diff := cmp.Diff(answer{200, asJSON, "{}"}, get(t, url)); diff != "" {
		t.Error(diff)
	}
}

func TestFailuresOfProbesAreReported(t *testing.T) {
	var fails atomic.Pointer[func() (map[string]any, error)]
	c := health.DefaultConfig()
	c.Liveness, c.Snapshot, c.ProbeAge = "http://localhost:0", started().get, 0
	c.Probes = func(context.Context) (map[string]any, error) { return (*fails.Load())() }
	url := run(t, c).Liveness
	for want, f := range map[string]func() (map[string]any, error){
		"A probe failed: no database\n":               func() (map[string]any, error) { return nil, errors.New("no database") },
		"A probe failed: a probe panicked: oops\ngor": func() (map[string]any, error) { panic("oops") },
		`A probe failed: encode the result of probe "p" as JSON: json: unsupported type: func()`: func() (map[string]any, error) {
			return map[string]any{"p": func() {}}, nil
		},
	} {
		fails.Store(&f)
		if got := get(t, url); got.Code != 500 || got.Type != plain || !strings.HasPrefix(got.Body, want) {
			t.Errorf("got %v, want %q", got, want)
		}
		if _, stack, panicked := strings.Cut(get(t, url).Body, "[running]:\n"); panicked && !strings.HasPrefix(stack, "gopf.dev/gopf/internal/health_test.TestFailuresOfProbesAreReported") {
			t.Errorf("the stack does not begin with the probe: %s", stack)
		}
	}
}

func TestOneAddressServesAll(t *testing.T) {
	c := health.DefaultConfig()
	c.Liveness, c.Health, c.Metrics, c.Debug = "http://localhost:0/", "localhost:0", "localhost:0", "localhost:0"
	c.Snapshot = started().get
	c.MetricsHandler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metrics!") })
	at := run(t, c)
	if at.Health != at.Metrics || at.Health != at.Debug || at.Liveness != "http://"+at.Health+"/" {
		t.Fatalf("%+v", at)
	}
	for path, want := range map[string]string{
		"/": "{}", "/livez": "alive\n", "/readyz": "ready\n", "/metrics": "metrics!", "/x": "not found\n",
	} {
		if got := get(t, "http://"+at.Health+path).Body; got != want {
			t.Errorf("%s: %q", path, got)
		}
	}
}

func TestPickedPortsAreLogged(t *testing.T) {
	taken := must(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))
	fixed := taken.Addr().String()
	taken.Close()
	var log strings.Builder
	c := health.DefaultConfig()
	c.Health, c.Debug, c.Snapshot, c.Log = "127.0.0.1:0", fixed, started().get, slog.New(slog.NewTextHandler(&log, nil))
	s := must(health.Listen(t.Context(), c))
	defer s.Close()
	if want := "for=health address=" + s.Addresses().Health; !strings.Contains(log.String(), want) || strings.Contains(log.String(), fixed) {
		t.Errorf("got %q, want %q and nothing else", log.String(), want)
	}
}

func TestAddressesMayDiffer(t *testing.T) {
	c := health.DefaultConfig()
	c.Health, c.Metrics, c.Snapshot, c.MetricsHandler = "127.0.0.1:0", "localhost:0", started().get, http.NotFoundHandler()
	at := run(t, c)
	if at.Health == at.Metrics || at.Liveness != "" || at.Debug != "" {
		t.Errorf("%+v", at)
	}
	if got := get(t, "http://"+at.Metrics+"/livez").Code; got != 404 {
		t.Error(got)
	}
}

func TestProfiles(t *testing.T) {
	c := health.DefaultConfig()
	c.Debug, c.ProbeLimit = "localhost:0", 0
	base := "http://" + run(t, c).Debug + "/debug/pprof/"
	for path, want := range map[string]struct {
		code  int
		begin string
	}{
		"":                     {200, "go tool pprof"},
		"heap?gc=1":            {200, "\x1f\x8b"}, // gzip
		"goroutine?debug=1":    {200, "goroutine profile:"},
		"profile?seconds=0.01": {200, "\x1f\x8b"},
		"trace?seconds=0.01":   {200, "go 1."},
		"profile?seconds=x":    {400, "seconds must be"},
		"trace?seconds=1e6":    {400, "seconds must be"},
		"heap?seconds=1":       {400, "only profile and trace"},
		"nonsense":             {404, "there is no profile"},
	} {
		if got := get(t, base+path); got.Code != want.code || !strings.HasPrefix(got.Body, want.begin) {
			t.Errorf("%s: %d %.40q", path, got.Code, got.Body)
		}
	}
	req := must(http.NewRequestWithContext(t.Context(), http.MethodGet, base, nil))
	if _, pattern := http.DefaultServeMux.Handler(req); pattern != "" {
		t.Errorf("the default mux serves %s", pattern)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestAddressesThatCannotBeServed(t *testing.T) {
	taken := must(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))
	defer taken.Close()
	used := taken.Addr().String()
	metrics := http.NotFoundHandler()
	for _, c := range []struct {
		config health.Config
		want   string
	}{
		{health.Config{Health: used}, `serve health at "` + used + `": listen tcp`},
		{health.Config{Metrics: used, MetricsHandler: metrics}, `serve metrics at "` + used + `"`},
		{health.Config{Debug: used}, `serve profiles at "` + used + `"`},
		{health.Config{Liveness: "http://" + used + "/healthz"}, `serve the probes at "` + used + `"`},
		{health.Config{Health: "8080"}, `serve health at "8080": missing port in address; use something like :8080 or localhost:8080`},
		{health.Config{Health: "localhost:http"}, `serve health at "localhost:http": "http" is not a port number; use something like :8080 or localhost:8080`},
		{health.Config{Health: "localhost:0", Liveness: "http://localhost:0/livez"},
			`serve health at "localhost:0": the path /livez is taken by another endpoint; choose another port for one of them`},
		{health.Config{Liveness: "https://localhost/"},
			`serve the probes at "https://localhost/": the scheme is "https", but only http is supported; use something like http://0.0.0.0:8080/healthz`},
		{health.Config{Liveness: "localhost:8080/healthz"},
			`serve the probes at "localhost:8080/healthz": the scheme is "localhost", but only http is supported; use something like http://0.0.0.0:8080/healthz`},
		{health.Config{Liveness: "0.0.0.0:8080"},
			`serve the probes at "0.0.0.0:8080": first path segment in URL cannot contain colon; use something like http://0.0.0.0:8080/healthz`},
		{health.Config{Liveness: "http:localhost"},
			`serve the probes at "http:localhost": two slashes are missing after the scheme; use something like http://0.0.0.0:8080/healthz`},
		{health.Config{Liveness: "http://localhost:99999"},
			`serve the probes at "http://localhost:99999": "99999" is not a port number; use something like http://0.0.0.0:8080/healthz`},
	} {
		c.config.Snapshot = started().get
		s, err := health.Listen(t.Context(), c.config)
		if err == nil {
			s.Close()
			t.Errorf("%s: got no error", c.want)
			continue
		}
		var address *health.AddressError
		if !errors.As(err, &address) {
			t.Errorf("%v is a %T", err, err)
		}
		want := strings.TrimSuffix(c.want, ": listen tcp")
		if got := err.Error(); !strings.HasPrefix(got, want) {
			t.Errorf("got %s\nwant %s", got, want)
		} else if strings.Contains(want, used) && !strings.Contains(got, "address already in use; another program or operator is listening there: stop it, or choose another port (0 picks a free one)") {
			t.Errorf("no advice: %s", got)
		}
	}
}

func TestEndpointsRequireTheirHandlers(t *testing.T) {
	for _, c := range []health.Config{{Health: "localhost:0"}, {Liveness: "http://localhost:0"}, {Metrics: "localhost:0"}} {
		if s, err := health.Listen(t.Context(), c); err == nil {
			s.Close()
			t.Errorf("%+v: got no error", c)
		}
	}
}

func TestNothingStaysOpenIfOneAddressIsRefused(t *testing.T) {
	free := must(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))
	address := free.Addr().String()
	free.Close()
	c := health.Config{Health: address, Debug: "nonsense", Snapshot: started().get}
	if _, err := health.Listen(t.Context(), c); err == nil {
		t.Fatal("served")
	}
	c.Debug = ""
	s, err := health.Listen(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

func TestStoppingLeavesNothingBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	var log bytes.Buffer
	entered := make(chan struct{})
	c := health.DefaultConfig()
	c.Liveness, c.Health, c.Debug, c.Snapshot = "http://localhost:0", "127.0.0.1:0", "127.0.0.1:0", started().get
	c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	c.Probes = func(ctx context.Context) (map[string]any, error) {
		close(entered)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	s, err := health.Listen(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()

	at := s.Addresses()
	var asking sync.WaitGroup
	for _, url := range []string{at.Liveness, "http://" + at.Debug + "/debug/pprof/profile"} {
		asking.Go(func() { try(t, url) })
	}
	idle := must(new(net.Dialer).DialContext(t.Context(), "tcp", at.Health)) // connected, but silent
	defer idle.Close()
	<-entered
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	asking.Wait()
	if _, err := new(net.Dialer).DialContext(t.Context(), "tcp", at.Health); err == nil {
		t.Error("the address is still in use")
	}
	if !strings.Contains(log.String(), "Serving health status at "+at.Liveness) {
		t.Error(log.String())
	}
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			buffer := make([]byte, 1<<20)
			t.Fatalf("goroutines: %d before, now %s", before, buffer[:runtime.Stack(buffer, true)])
		}
	}
}

func TestAStuckProbeDoesNotDelayShutdown(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	defer close(leave)
	var log bytes.Buffer
	c := health.DefaultConfig()
	c.Liveness, c.Snapshot, c.Grace = "http://localhost:0", started().get, 10*time.Millisecond
	c.Log = slog.New(slog.NewTextHandler(&log, nil))
	c.Probes = func(context.Context) (map[string]any, error) {
		close(entered)
		<-leave
		return nil, nil
	}
	s, err := health.Listen(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	var asking sync.WaitGroup
	asking.Go(func() { try(t, s.Addresses().Liveness) })
	<-entered
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	asking.Wait()
	if !strings.Contains(log.String(), "A probe did not return in time at shutdown and is abandoned.") {
		t.Error(log.String())
	}
}

func TestABrokenListenerEndsTheServer(t *testing.T) {
	var log bytes.Buffer
	c := health.DefaultConfig()
	c.Health, c.Debug, c.Snapshot = "127.0.0.1:0", "localhost:0", started().get
	c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	s, err := health.Listen(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- s.Run(t.Context()) }()
	get(t, "http://"+s.Addresses().Health+"/livez") // it runs
	get(t, "http://"+s.Addresses().Debug+"/debug/pprof/")
	s.Close()
	if err := <-done; !errors.Is(err, net.ErrClosed) || !strings.HasPrefix(err.Error(), "serve health at ") {
		t.Error(err)
	}
	if log.Len() > 0 {
		t.Error(log.String())
	}
}

func TestAFloodOfConnectionsIsBounded(t *testing.T) {
	c := health.DefaultConfig()
	c.Health, c.Snapshot = "127.0.0.1:0", started().get
	at := run(t, c)
	var flood []net.Conn
	for range 400 {
		conn, err := net.Dial("tcp", at.Health)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		flood = append(flood, conn)
	}
	resp, err := http.Get("http://" + at.Health + "/livez")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	closed := 0
	for _, conn := range flood {
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond)) // a socket can always do that
		var timeout net.Error
		if _, err := conn.Read(make([]byte, 1)); !errors.As(err, &timeout) || !timeout.Timeout() {
			closed++
		}
	}
	if closed < 400-256 {
		t.Errorf("the server closed %d of 400 connections", closed)
	}
}
