package metrics_test

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"gopf.dev/gopf/internal/metrics"
)

var update = flag.Bool("update", false, "write the golden file")

func create(t *testing.T, o metrics.Options) *metrics.Metrics {
	t.Helper()
	m, err := metrics.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// use counts everything once.
func use(m *metrics.Metrics) {
	r := m.Resource("pods.v1", "create_fn", "update_fn/spec.size")
	for e := range metrics.Missed + 1 {
		r.Event(e)
	}
	r.Reconnected()
	r.Relisted()
	r.ForeignWrite()
	for o := range metrics.Stopped + 1 {
		r.Handler("create_fn").Ran(o, time.Second)
	}
	r.Handler("create_fn/volume-123").Ran(metrics.Succeeded, 20*time.Millisecond)
	m.Activities("login").Handler("login").Ran(metrics.Retried, time.Minute)
	m.Request("patch", "pods.v1", 200, 7*time.Millisecond)
	m.Request("patch", "pods.v1", 409, 7*time.Millisecond)
	m.Request("watch", "pods.v1", 0, time.Minute)
	m.EventPosted()
	m.EventsDropped(3)
	m.Webhook("validate").Reviewed(metrics.Allowed, time.Millisecond)
	m.Webhook("validate").Reviewed(metrics.Denied, time.Millisecond)
	m.Webhook("validate").Reviewed(metrics.ReviewFailed, time.Millisecond)
	m.Observe(func() metrics.Gauges {
		return metrics.Gauges{
			Resources: []metrics.ResourceGauges{
				{Resource: "pods.v1", Listing: 1, Watching: 2, Failing: 3, Silence: 4 * time.Second,
					Queued: 5, QueuedBytes: 6, Oldest: 7500 * time.Millisecond, Retries: 8, OldestRetry: 90 * time.Second, Daemons: 9, Timers: 10, Paused: 11},
				{Resource: "apps.v1", Watching: 1},
			},
			Indices: map[string]int{"by_node": 11, "all": 12},
			Load:    metrics.LoadGauges{Handlers: 21, Limit: 32.5, InFlight: 22, Waiting: 23},
			Paused:  true, Leading: true, Problems: 13,
			Reviews: metrics.ReviewGauges{Waiting: 14, Oldest: 1500 * time.Millisecond, InFlight: 15, Bytes: 16, CertificateExpiry: time.Unix(1_790_000_000, 0)},
		}
	})
}

func scrape(t *testing.T, m *metrics.Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	body, err := io.ReadAll(w.Result().Body)
	if err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %s %v", w.Code, body, err)
	}
	return string(body)
}

var goVersion = regexp.MustCompile(`go_version="[^"]*"`)

func TestExposition(t *testing.T) {
	// A separate registry leaves out the metrics of the process.
	m := create(t, metrics.Options{Version: "1.2.3", Operator: "example", Registerer: prometheus.NewRegistry()})
	use(m)
	got := goVersion.ReplaceAllString(scrape(t, m), `go_version="go"`)
	const golden = "testdata/exposition.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("run with -update to write it: %s", diff)
	}
}

func TestNamesFollowTheConventions(t *testing.T) {
	registry := prometheus.NewRegistry()
	use(create(t, metrics.Options{Registerer: registry}))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(families) < 20 {
		t.Fatalf("%d metrics, %v", len(families), err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestTheProcessIsMeasuredByDefault(t *testing.T) {
	text := scrape(t, create(t, metrics.Options{}))
	for _, name := range []string{"\ngo_goroutines ", "\nprocess_cpu_seconds_total ", "\ngopf_build_info{"} {
		if !strings.Contains(text, name) {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestSubHandlersAreCountedWithTheirDeclaredParents(t *testing.T) {
	m := create(t, metrics.Options{Registerer: prometheus.NewRegistry()})
	r := m.Resource("pods.v1", "create", "update", "update/spec.size")
	for _, id := range []string{
		"create", "create/a", "create/b", "create/c/d/e", "update/spec.size", "update/spec.size/x",
		"update/spec.other", "creature", "creature/x", "", "/", "unknown",
	} {
		r.Handler(id).Ran(metrics.Succeeded, time.Second)
	}
	got := map[string]string{}
	for _, m := range regexp.MustCompile(`runs_total{handler="(.*)",outcome="succeeded",resource="pods.v1"} (\d+)`).
		FindAllStringSubmatch(scrape(t, m), -1) {
		got[m[1]] = m[2]
	}
	want := map[string]string{
		"create": "1", "create/*": "3", "update": "0", "update/spec.size": "1", "update/spec.size/*": "1", "update/*": "1", "*": "5",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestLabelsOfRequestsAreBounded(t *testing.T) {
	m := create(t, metrics.Options{Registerer: prometheus.NewRegistry()})
	for i := range 1000 {
		m.Request(fmt.Sprintf("verb%d", i), "pods.v1", 600+i, time.Second)
		m.Request("get", fmt.Sprintf("resource%d", i), 200, time.Second)
	}
	text := scrape(t, m)
	for _, want := range []string{
		`gopf_api_requests_total{code="0",resource="pods.v1",verb="other"} 1000`,
		`gopf_api_requests_total{code="200",resource="other",verb="get"} 701`,
		`gopf_api_request_duration_seconds_count{verb="get"} 1000`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("%s is missing", want)
		}
	}
	if n := strings.Count(text, "\ngopf_api_requests_total{"); n != 301 {
		t.Errorf("%d series", n)
	}
}

func TestUnknownEnumsAreNotCounted(t *testing.T) {
	m := create(t, metrics.Options{Registerer: prometheus.NewRegistry()})
	r, w := m.Resource("pods.v1", "fn"), m.Webhook("validate")
	before := scrape(t, m)
	for _, n := range []int{-1, 99} {
		r.Event(metrics.Event(n))
		r.Handler("fn").Ran(metrics.Outcome(n), time.Second)
		w.Reviewed(metrics.Review(n), time.Second)
	}
	if diff := cmp.Diff(before, scrape(t, m)); diff != "" {
		t.Error(diff)
	}
}

func TestSeriesOfForgottenResourcesAreRemoved(t *testing.T) {
	m := create(t, metrics.Options{Registerer: prometheus.NewRegistry()})
	m.Resource("pods.v1", "fn").Handler("fn").Ran(metrics.Failed, time.Second)
	kept := m.Resource("apps.v1", "fn")
	m.Forget("pods.v1")
	text := scrape(t, m)
	if strings.Contains(text, "pods.v1") || !strings.Contains(text, "apps.v1") {
		t.Error(text)
	}
	kept.Handler("fn").Ran(metrics.Failed, time.Second)
	m.Resource("pods.v1", "fn").Relisted()
	if text := scrape(t, m); !strings.Contains(text, `gopf_stream_relists_total{resource="pods.v1"} 1`) {
		t.Error(text)
	}
}

func TestEntriesOfOneResourceAreAddedUp(t *testing.T) {
	m := create(t, metrics.Options{Registerer: prometheus.NewRegistry()})
	one := metrics.ResourceGauges{Resource: "pods.v1", Listing: 1, Watching: 1, Failing: 1, Silence: time.Second,
		Queued: 1, QueuedBytes: 1, Oldest: time.Second, Retries: 1, OldestRetry: time.Second, Daemons: 1, Timers: 1, Paused: 1}
	other := one
	other.Silence, other.Oldest, other.OldestRetry = 3*time.Second, 3*time.Second, 4*time.Second
	m.Observe(func() metrics.Gauges { return metrics.Gauges{Resources: []metrics.ResourceGauges{one, other}} })
	got := map[string]string{}
	for _, line := range regexp.MustCompile(`(?m)^(gopf_.*resource="pods.v1".*) (\d+)$`).FindAllStringSubmatch(scrape(t, m), -1) {
		got[line[1]] = line[2]
	}
	want := map[string]string{
		`gopf_streams{resource="pods.v1",state="listing"}`:    "2",
		`gopf_streams{resource="pods.v1",state="watching"}`:   "2",
		`gopf_streams{resource="pods.v1",state="failing"}`:    "2",
		`gopf_stream_silence_seconds{resource="pods.v1"}`:     "3",
		`gopf_queue_depth{resource="pods.v1"}`:                "2",
		`gopf_queue_bytes{resource="pods.v1"}`:                "2",
		`gopf_queue_oldest_age_seconds{resource="pods.v1"}`:   "3",
		`gopf_retries_oldest_age_seconds{resource="pods.v1"}`: "4",
		`gopf_retries_waiting{resource="pods.v1"}`:            "2",
		`gopf_daemons_running{resource="pods.v1"}`:            "2",
		`gopf_timers_waiting{resource="pods.v1"}`:             "2",
		`gopf_paused_objects{resource="pods.v1"}`:             "2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	m.Observe(nil)
	if text := scrape(t, m); strings.Contains(text, "gopf_streams") {
		t.Error("gauges are collected after the operator has ended")
	}
}

func TestOperatorsShareARegistererByName(t *testing.T) {
	registry := prometheus.NewRegistry()
	a := create(t, metrics.Options{Registerer: registry, Operator: "a"})
	b := create(t, metrics.Options{Registerer: registry, Operator: "b"})
	use(a)
	use(b)
	text := scrape(t, a)
	for _, want := range []string{`gopf_posted_events_total{operator="a"} 1`, `gopf_posted_events_total{operator="b"} 1`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing", want)
		}
	}
	if _, err := metrics.New(metrics.Options{Registerer: registry, Operator: "b"}); err == nil || !strings.Contains(err.Error(), "each needs a unique name") {
		t.Errorf("one name twice: %v", err)
	}
	if scrape(t, a) != text {
		t.Error("the failed attempt left collectors behind")
	}
	b.Close()
	if text := scrape(t, a); strings.Contains(text, `operator="b"`) {
		t.Error("closed metrics are served")
	}
	create(t, metrics.Options{Registerer: registry, Operator: "b"})
}

func TestARegistererThatCannotBeReadNeedsAGatherer(t *testing.T) {
	registry := prometheus.NewRegistry()
	writer := prometheus.WrapRegistererWithPrefix("my_", registry)
	if _, err := metrics.New(metrics.Options{Registerer: writer}); err == nil {
		t.Error("no error")
	}
	m := create(t, metrics.Options{Registerer: writer, Gatherer: registry})
	m.EventPosted()
	if text := scrape(t, m); !strings.Contains(text, "my_gopf_posted_events_total 1") {
		t.Error(text)
	}
}

func TestNilCountsNothing(t *testing.T) {
	var m *metrics.Metrics
	use(m)
	m.Forget("pods.v1")
	m.Observe(nil)
	m.Close()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusNotFound {
		t.Error(w.Code)
	}
}

func TestCountingWhileScraping(t *testing.T) {
	m := create(t, metrics.Options{Registerer: prometheus.NewRegistry()})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 20 {
				use(m)
				scrape(t, m)
			}
		})
	}
	all.Wait()
	if text := scrape(t, m); !strings.Contains(text, "gopf_posted_events_total 80\n") {
		t.Error(text)
	}
}

// hot counts what occurs with every event.
func hot(m *metrics.Metrics) func() {
	r := m.Resource("pods.v1", "create_fn")
	h := r.Handler("create_fn")
	return func() {
		r.Event(metrics.Modified)
		h.Ran(metrics.Succeeded, time.Millisecond)
		r.Handler("create_fn/made-from-data").Ran(metrics.Waiting, time.Millisecond)
		m.Request("patch", "pods.v1", 200, time.Millisecond)
		m.EventPosted()
	}
}

func TestCountingAllocatesNothing(t *testing.T) {
	for name, m := range map[string]*metrics.Metrics{"metrics": create(t, metrics.Options{}), "none": nil} {
		count := hot(m)
		if n := testing.AllocsPerRun(100, count); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkCounting(b *testing.B) {
	m, err := metrics.New(metrics.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for name, m := range map[string]*metrics.Metrics{"metrics": m, "none": nil} {
		b.Run(name, func(b *testing.B) {
			count := hot(m)
			b.ReportAllocs()
			for b.Loop() {
				count()
			}
		})
	}
}
