package otel_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/otel"
)

const resource = "kopf.dev/v1/kopfexamples"

func object(name string, annotations map[string]any) gopf.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kopf.dev/v1", "kind": "KopfExample",
		"metadata": map[string]any{"name": name, "namespace": "default", "annotations": annotations},
		"spec":     map[string]any{"field": "a"},
	}}
}

// observed runs an operator in virtual time, and returns its spans and metrics.
func observed(t *testing.T, declare func(*gopf.Resource[gopf.Unstructured]), objects ...gopf.Unstructured) (tracetest.SpanStubs, metricdata.ResourceMetrics) {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	reader := sdkmetric.NewManualReader()
	var metrics metricdata.ResourceMetrics
	synctest.Test(t, func(t *testing.T) {
		c := gopftest.NewCluster(t, resource)
		op := gopf.New()
		declare(op.Resource(resource))
		tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
		if err := otel.With(op, tracers, sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))); err != nil {
			t.Fatal(err)
		}
		gopftest.Start(t, op, c)
		for _, o := range objects {
			c.Create(t, o)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if err := reader.Collect(t.Context(), &metrics); err != nil {
			t.Fatal(err)
		}
	})
	return spans.GetSpans(), metrics
}

// find returns the spans with a name.
func find(spans tracetest.SpanStubs, name string) (all []tracetest.SpanStub) {
	for _, s := range spans {
		if s.Name == name {
			all = append(all, s)
		}
	}
	return all
}

func attributeOf(s tracetest.SpanStub, key string) string {
	for _, a := range s.Attributes {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

func TestSpansOfHandlersAndRequestsAreInTheirTurn(t *testing.T) {
	const remote = "0af7651916cd43dd8448eb211c80319c"
	spans, metrics := observed(t, func(x *gopf.Resource[gopf.Unstructured]) {
		x.OnCreate("make", func(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
			if c.Retry == 0 {
				return gopf.RetryAfter(time.Second, errors.New("not yet"))
			}
			c.Sub("part", func(context.Context, *gopf.Change[gopf.Unstructured]) error { return nil })
			return nil
		})
		x.OnCreate("later", func(context.Context, *gopf.Change[gopf.Unstructured]) error { return gopf.Wait(time.Hour, "no hurry") })
	}, object("secret-name", map[string]any{otel.Annotation: "00-" + remote + "-b7ad6b7169203331-01"}))

	turns := find(spans, "turn kopfexamples.kopf.dev")
	calls := find(spans, "handler make")
	if len(calls) != 2 || len(turns) < 2 {
		t.Fatalf("got %d calls in %d turns", len(calls), len(turns))
	}
	inTurn := func(s tracetest.SpanStub) bool {
		return slices.ContainsFunc(turns, func(turn tracetest.SpanStub) bool {
			return turn.SpanContext.SpanID() == s.Parent.SpanID() && turn.SpanContext.TraceID() == s.SpanContext.TraceID() && !turn.StartTime.After(s.StartTime) && !turn.EndTime.Before(s.EndTime)
		})
	}
	for i, outcome := range []string{"retried", "succeeded"} {
		s := calls[i]
		if !inTurn(s) || attributeOf(s, "gopf.outcome") != outcome || (s.Status.Code == codes.Error) != (outcome == "retried") ||
			attributeOf(s, "gopf.reason") != "create" || attributeOf(s, "gopf.object.name") != "secret-name" || attributeOf(s, "k8s.namespace.name") != "default" {
			t.Errorf("call %d: %+v", i, s)
		}
		if len(s.Links) != 1 || s.Links[0].SpanContext.TraceID().String() != remote {
			t.Errorf("call %d has the links %+v", i, s.Links)
		}
	}
	if s := find(spans, "handler later"); len(s) != 1 || attributeOf(s[0], "gopf.outcome") != "waiting" || s[0].Status.Code == codes.Error {
		t.Errorf("a wait: %+v", s)
	}
	if part := find(spans, "handler make/part"); len(part) != 1 || part[0].Parent.SpanID() != calls[1].SpanContext.SpanID() {
		t.Errorf("the sub-handler: %+v", part)
	}
	patches := find(spans, "patch kopfexamples.kopf.dev")
	if len(patches) < 2 || !inTurn(patches[0]) || attributeOf(patches[0], "http.response.status_code") != "200" {
		t.Errorf("the writes: %+v", patches)
	}
	for _, turn := range turns {
		if turn.Parent.IsValid() || !slices.ContainsFunc(spans, func(s tracetest.SpanStub) bool { return s.Parent.SpanID() == turn.SpanContext.SpanID() }) {
			t.Errorf("a turn with nothing in it, or inside of another span: %+v", turn)
		}
	}

	seen := map[string]bool{}
	for _, scope := range metrics.ScopeMetrics {
		for _, m := range scope.Metrics {
			for _, p := range m.Data.(metricdata.Histogram[float64]).DataPoints {
				handler, _ := p.Attributes.Value(attribute.Key("gopf.handler"))
				outcome, _ := p.Attributes.Value(attribute.Key("gopf.outcome"))
				seen[m.Name+" "+handler.AsString()+" "+outcome.AsString()] = true
				for _, a := range p.Attributes.ToSlice() {
					if text := a.Value.String(); strings.Contains(text, "secret-name") || text == "default" || strings.Contains(text, "part") {
						t.Errorf("%s has %s=%s", m.Name, a.Key, text)
					}
				}
			}
		}
	}
	for _, want := range []string{"gopf.handler.duration make retried", "gopf.handler.duration make succeeded", "gopf.handler.duration later waiting", "gopf.api.request.duration  "} {
		if !seen[want] {
			t.Errorf("%q is not in %v", want, seen)
		}
	}
}

func TestTimersAreRootsAndDaemonsHaveNoSpans(t *testing.T) {
	spans, _ := observed(t, func(x *gopf.Resource[gopf.Unstructured]) {
		x.OnCreate("make", func(context.Context, *gopf.Change[gopf.Unstructured]) error { return nil })
		x.Timer("tick", time.Second, func(context.Context, *gopf.Tick[gopf.Unstructured]) error { return nil })
		x.Daemon("tail", func(ctx context.Context, _ *gopf.Daemon[gopf.Unstructured]) error { <-ctx.Done(); return nil })
	}, object("a", nil))
	ticks := find(spans, "handler tick")
	if len(ticks) < 3 {
		t.Fatalf("%d ticks", len(ticks))
	}
	for _, s := range ticks {
		if s.Parent.IsValid() {
			t.Errorf("a timer inside of a span: %+v", s)
		}
	}
	if s := find(spans, "handler tail"); len(s) != 0 {
		t.Errorf("a daemon: %+v", s)
	}
	if s := append(find(spans, "watch kopfexamples.kopf.dev"), find(spans, "list kopfexamples.kopf.dev")...); len(s) != 0 {
		t.Errorf("requests that belong to no object: %+v", s)
	}
}

func TestNothingIsObservedUnlessAVariableAsks(t *testing.T) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_SDK_DISABLED"} {
		t.Setenv(name, "")
	}
	check := func(want bool) {
		t.Helper()
		op := gopf.New()
		shutdown, err := otel.Use(op)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = shutdown(context.WithoutCancel(t.Context())) }() // there is no collector
		if got := op.Settings.Networking.Transport != nil; got != want {
			t.Errorf("observed: %v, want %v", got, want)
		}
	}
	check(false)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
	t.Setenv("OTEL_METRICS_EXPORTER", "none")
	check(true)
	t.Setenv("OTEL_METRICS_EXPORTER", "otlp")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	check(true)
	t.Setenv("OTEL_METRICS_EXPORTER", "none")
	t.Setenv("OTEL_SDK_DISABLED", "true")
	check(false)
	t.Setenv("OTEL_SDK_DISABLED", "")
	t.Setenv("OTEL_TRACES_EXPORTER", "jaeger")
	if _, err := otel.Use(gopf.New()); err == nil || !strings.Contains(err.Error(), `OTEL_TRACES_EXPORTER is "jaeger"; use otlp or none`) {
		t.Errorf("got %v", err)
	}
	t.Setenv("OTEL_TRACES_EXPORTER", "otlp")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "smoke")
	if _, err := otel.Use(gopf.New()); err == nil || !strings.Contains(err.Error(), "use http/protobuf or grpc") {
		t.Errorf("got %v", err)
	}
}

func TestTracesAndMetricsReachACollector(t *testing.T) {
	var traces, metrics atomic.Int32
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/v1/traces":
			traces.Add(1)
		case "/v1/metrics":
			metrics.Add(1)
		}
	}))
	defer collector.Close()
	for _, name := range []string{"OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_SDK_DISABLED", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		t.Setenv(name, "")
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	c := gopftest.NewCluster(t, resource)
	op := gopf.New()
	made := make(chan struct{})
	op.Resource(resource).OnCreate("make", func(context.Context, *gopf.Change[gopf.Unstructured]) error { close(made); return nil })
	shutdown, err := otel.Use(op)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- op.Run(ctx, gopf.Cluster(c.RESTConfig()), gopf.Log(slog.New(slog.DiscardHandler))) }()
	c.Create(t, object("a", nil))
	select {
	case <-made:
	case <-time.After(30 * time.Second):
		t.Error("the handler was not called")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := shutdown(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	if traces.Load() == 0 || metrics.Load() == 0 {
		t.Errorf("the collector got %d requests with traces and %d with metrics", traces.Load(), metrics.Load())
	}
}

// lines is a slog.Handler that keeps the attributes of each message.
type lines struct {
	mu    *sync.Mutex
	all   map[string]map[string]string
	attrs map[string]string
}

func (l lines) Enabled(context.Context, slog.Level) bool { return true }

func (l lines) WithGroup(string) slog.Handler { return l }

func (l lines) WithAttrs(attrs []slog.Attr) slog.Handler {
	l.attrs = maps.Clone(l.attrs)
	for _, a := range attrs {
		l.attrs[a.Key] = a.Value.String()
	}
	return l
}

func (l lines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	attrs := maps.Clone(l.attrs)
	r.Attrs(func(a slog.Attr) bool {
		if _, twice := attrs[a.Key]; twice {
			a.Key += " twice"
		}
		attrs[a.Key] = a.Value.String()
		return true
	})
	l.all[r.Message] = attrs
	return nil
}

func TestLinesHaveTheIDsOfTheirSpans(t *testing.T) {
	for sampled, sampler := range map[bool]sdktrace.Sampler{true: sdktrace.AlwaysSample(), false: sdktrace.NeverSample()} {
		spans, logged := tracetest.NewInMemoryExporter(), lines{&sync.Mutex{}, map[string]map[string]string{}, map[string]string{}}
		synctest.Test(t, func(t *testing.T) {
			c := gopftest.NewCluster(t, resource)
			op := gopf.New()
			op.Resource(resource).OnCreate("make", func(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
				c.Log.Info("from the handler")
				return nil
			})
			op.Resource(resource).OnEvent("see", func(context.Context, *gopf.WatchEvent[gopf.Unstructured]) error { return nil })
			op.Resource(resource).Timer("tick", time.Minute, func(context.Context, *gopf.Tick[gopf.Unstructured]) error { return nil })
			op.OnStartup("start", func(context.Context, *gopf.Activity) error { return nil })
			op.Settings.Admission.Managed = "auto.kopf.dev"
			op.Resource(resource).Validate("check", func(_ context.Context, r *gopf.Review[gopf.Unstructured]) error {
				r.Log.Info("from the review")
				return nil
			})
			tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithSampler(sampler))
			if err := otel.With(op, tracers, sdkmetric.NewMeterProvider()); err != nil {
				t.Fatal(err)
			}
			gopftest.Start(t, op, c, gopf.Log(slog.New(logged)))
			time.Sleep(5 * time.Second)
			c.Create(t, object("x", nil))
			time.Sleep(5 * time.Second)
			synctest.Wait()
		})
		for line, span := range map[string]string{
			"from the review":  "handler check",
			"from the handler": "handler make", "Handler 'make' succeeded.": "handler make", "Handler 'see' succeeded.": "handler see",
			"Timer 'tick' succeeded.": "handler tick", "Activity 'start' succeeded.": "handler start",
			"Creation is processed: 1 succeeded; 0 failed.": "turn kopfexamples.kopf.dev", "Merge-patching the resource with:": "turn kopfexamples.kopf.dev",
		} {
			got, found := logged.all[line]
			if !found {
				t.Errorf("%q was not logged", line)
				continue
			}
			is := func(s tracetest.SpanStub) bool {
				return got["trace_id"] == s.SpanContext.TraceID().String() && got["span_id"] == s.SpanContext.SpanID().String()
			}
			switch calls := find(spans.GetSpans(), span); {
			case got["trace_id twice"] != "":
				t.Errorf("%q has two traces: %v", line, got)
			case !sampled && (got["trace_id"] != "" || got["span_id"] != ""):
				t.Errorf("not sampled: %q has %v", line, got)
			case sampled && !slices.ContainsFunc(calls, is):
				t.Errorf("%q has %v, the spans are %+v", line, got, calls)
			}
		}
	}
}

// Errors may quote objects of tenants, and thousands of spans wait for the exporter.
func TestSpansKeepTheStartAndTheEndOfLongErrors(t *testing.T) {
	spans, _ := observed(t, func(x *gopf.Resource[gopf.Unstructured]) {
		x.OnCreate("make", func(context.Context, *gopf.Change[gopf.Unstructured]) error {
			return gopf.Permanent(errors.New("the start " + strings.Repeat("x", 1<<20) + " the end"))
		})
	}, object("a", nil))
	calls := find(spans, "handler make")
	if len(calls) != 1 || len(calls[0].Events) != 1 {
		t.Fatalf("got %d calls", len(calls))
	}
	for _, a := range calls[0].Events[0].Attributes {
		if text := a.Value.String(); a.Key == "exception.message" && len(text) <= 8<<10 && strings.Contains(text, "the start") && strings.HasSuffix(text, "the end") {
			return
		}
	}
	t.Error("the message is missing or too long")
}
