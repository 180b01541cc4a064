package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/webhook"
)

// certified is a webhook server that only reports when its certificate expires.
type certified struct {
	expires time.Time
	report  func(time.Time)
}

func (c certified) Bind(e webhook.Environment) webhook.Server {
	c.report = e.Certified
	return c
}

func (c certified) Serve(ctx context.Context, _ http.Handler, announce func(webhook.ClientConfig)) error {
	c.report(c.expires)
	announce(webhook.ClientConfig{URL: "https://localhost/"})
	<-ctx.Done()
	return nil
}

// scraped returns the value of a metric; -1 if it is not there. Labels are ignored.
func scraped(t *testing.T, address, metric string) float64 {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return -1 // it does not listen yet
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^` + metric + `(?:\{.*\})? (\S+)$`).FindSubmatch(text)
	if found == nil {
		return -1
	}
	value, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// status returns the HTTP status of a page; 0 if no server listens.
func status(t *testing.T, url string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func TestGaugesShowWhatTheOperatorIsBusyWith(t *testing.T) {
	c := gopftest.NewCluster(t, resource)
	op := gopf.New()
	address := freeAddress(t)
	op.Settings.Metrics.Address = address
	backups := prometheus.NewCounter(prometheus.CounterOpts{Name: "myoperator_backups_total", Help: "Backups made."})
	backups.Add(3)
	op.Settings.Metrics.Collectors = append(op.Settings.Metrics.Collectors, backups)
	_, port, err := net.SplitHostPort(freeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	op.Settings.Metrics.Pprof = ":" + port
	expires := time.Now().Add(time.Hour).Truncate(time.Second)
	op.Settings.Admission.Server = certified{expires: expires}
	release := make(chan struct{})
	x := gopf.For[*Example](op, resource)
	x.OnCreate("make", func(ctx context.Context, ch *gopf.Change[*Example]) error {
		if ch.Object.Name == "later" {
			return gopf.RetryAfter(time.Hour, errors.New("not yet"))
		}
		select {
		case <-release:
		case <-ctx.Done():
		}
		return nil
	})
	x.Validate("check", func(context.Context, *gopf.Review[*Example]) error { return nil })
	gopftest.Start(t, op, c)
	defer close(release)
	c.Create(t, example("busy", "a"))
	c.Create(t, example("later", "a"))
	for metric, good := range map[string]func(float64) bool{
		"gopf_handlers_running":                             func(v float64) bool { return v == 1 },
		"gopf_retries_waiting":                              func(v float64) bool { return v == 1 },
		"gopf_retries_oldest_age_seconds":                   func(v float64) bool { return v > 0 && v < 60 },
		"gopf_api_requests_limit":                           func(v float64) bool { return v >= 32 },
		"gopf_webhook_reviews_waiting":                      func(v float64) bool { return v == 0 },
		"myoperator_backups_total":                          func(v float64) bool { return v == 3 },
		"gopf_webhook_certificate_expiry_timestamp_seconds": func(v float64) bool { return v == float64(expires.Unix()) },
	} {
		deadline := time.Now().Add(20 * time.Second)
		for got := scraped(t, address, metric); !good(got); got = scraped(t, address, metric) {
			if time.Now().After(deadline) {
				t.Errorf("%s is %v", metric, got)
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	if code := status(t, "http://127.0.0.1:"+port+"/debug/pprof/"); code != http.StatusOK {
		t.Errorf("profiles: status %d", code)
	}
	if code := status(t, "http://"+address+"/debug/pprof/"); code != http.StatusNotFound {
		t.Errorf("profiles at the address of metrics: status %d", code)
	}
	for _, r := range c.Requests() {
		agent := r.Header.Get("User-Agent")
		if ours := regexp.MustCompile(`^\S+/\S+ gopf/\S+$`); r.Resource == "kopfexamples" && r.Verb == "watch" && !ours.MatchString(agent) {
			t.Errorf("the operator names itself %q", agent)
		}
	}
}

// retried returns when an operator writes to an object while the API server fails, and
// when it calls a handler that asks for a delay of 10 s.
func retried(t *testing.T, random func() float64) (writes, calls []time.Duration) {
	t.Helper()
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		op := gopf.New()
		op.Settings.Networking.ErrorDelays = []time.Duration{time.Second}
		op.Settings.Queueing.ErrorDelays = []time.Duration{2 * time.Second, 4 * time.Second}
		began := time.Now()
		x := gopf.For[*Example](op, resource)
		x.OnCreate("make", func(_ context.Context, ch *gopf.Change[*Example]) error {
			if ch.Object.Name == "failing" {
				return nil
			}
			calls = append(calls, time.Since(began))
			if ch.Retry < 3 {
				return gopf.RetryAfter(10*time.Second, errors.New("not yet"))
			}
			return nil
		})
		c.Fault(gopftest.Requests("patch", "kopfexamples").Object("default", "failing").First(5), gopftest.Fail(http.StatusInternalServerError))
		gopftest.Start(t, op, c, gopf.TestSeam{}.Jitter(random))
		c.Create(t, example("delayed", "a"))
		c.Create(t, example("failing", "a"))
		time.Sleep(time.Minute)
		for _, r := range c.Writes("kopfexamples") {
			if r.Name == "failing" && r.Verb == "patch" {
				writes = append(writes, r.Time.Sub(began))
			}
		}
	})
	return writes, calls
}

func TestTwoOperatorsDoNotRetryAtTheSameInstantsButDelaysOfHandlersAreExact(t *testing.T) {
	exact, calls := retried(t, nil)
	if got, want := fmt.Sprint(exact), "[0s 1s 3s 4s 8s 9s]"; got != want {
		t.Errorf("without jitter, the writes are at %s, want %s", got, want)
	}
	one, callsOfOne := retried(t, func() float64 { return 0.5 })
	other, callsOfOther := retried(t, func() float64 { return 0.25 })
	if got, want := fmt.Sprint(one), "[0s 900ms 2.7s 3.6s 7.2s 8.1s]"; got != want {
		t.Errorf("with jitter, the writes are at %s, want %s", got, want)
	}
	if len(other) != len(one) {
		t.Fatalf("the other operator writes at %s", other)
	}
	for i := 1; i < len(one); i++ {
		if one[i] == other[i] || one[i] > exact[i] || other[i] > exact[i] {
			t.Errorf("retry #%d is after %s and %s, without jitter after %s", i, one[i], other[i], exact[i])
		}
	}
	if got, want := fmt.Sprint(calls), "[0s 10s 20s 30s]"; got != want || fmt.Sprint(callsOfOne) != want || fmt.Sprint(callsOfOther) != want {
		t.Errorf("the handler with a delay is called at %s, %s and %s, want %s", calls, callsOfOne, callsOfOther, want)
	}
}

func TestOperatorsHaveJitterUnlessATestTurnsItOff(t *testing.T) {
	c := gopftest.NewCluster(t, resource)
	op := gopf.New()
	var log lines
	x := gopf.For[*Example](op, resource)
	x.OnCreate("make", func(context.Context, *gopf.Change[*Example]) error { return nil })
	op.Settings.Networking.ErrorDelays = nil
	op.Settings.Queueing.ErrorDelays = []time.Duration{10 * time.Second}
	c.Fault(gopftest.Requests("patch", "kopfexamples"), gopftest.Fail(http.StatusInternalServerError))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- op.Run(ctx, gopf.Cluster(c.RESTConfig()), gopf.Log(log.logger())) }()
	const objects = 20
	for i := range objects {
		c.Create(t, example(fmt.Sprintf("x-%d", i), "a"))
	}
	deadline := time.Now().Add(20 * time.Second)
	for log.count("Throttling for ") < objects && time.Now().Before(deadline) {
		time.Sleep(20 * time.Millisecond)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	delays := map[string]bool{}
	log.mu.Lock()
	defer log.mu.Unlock()
	for _, line := range log.text {
		if _, rest, ok := strings.Cut(line, "Throttling for "); ok {
			delay, _, _ := strings.Cut(rest, " ")
			delays[delay] = true
		}
	}
	if len(delays) < objects/2 {
		t.Errorf("%d objects have only the delays %v", objects, delays)
	}
}
