package otel_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/client"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/otel"
)

const configMaps = "v1/configmaps"

func child(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"key": value}}
}

// parentOf returns the id of the trace and of the span in the annotation of a ConfigMap.
func parentOf(t *testing.T, c *gopftest.Cluster, name string) (trace, span string) {
	t.Helper()
	parts := strings.Split(c.Get(t, configMaps, "default", name).GetAnnotations()[otel.Annotation], "-")
	if len(parts) != 4 {
		return "", ""
	}
	return parts[1], parts[2]
}

// isSpan reports whether one of the spans with the name is the one with the ids.
func isSpan(spans *tracetest.InMemoryExporter, name, trace, span string) bool {
	for _, s := range find(spans.GetSpans(), name) {
		if s.SpanContext.TraceID().String() == trace && s.SpanContext.SpanID().String() == span {
			return true
		}
	}
	return false
}

func TestChildrenHaveTheTraceThatWroteThemAndAreNotWrittenForIt(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	synctest.Test(t, func(t *testing.T) {
		c := gopftest.NewCluster(t, resource, configMaps)
		var calls atomic.Int32
		start := func(sampler sdktrace.Sampler) (stop func()) {
			op := gopf.New(gopf.Identity("examples.kopf.dev"))
			op.Resource(resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[gopf.Unstructured]) error {
				calls.Add(1)
				spec := r.Object.Object["spec"].(map[string]any)
				gopf.Want(r, child("one", spec["field"].(string)))
				own := child("two", spec["field"].(string))
				own.Annotations = map[string]string{otel.Annotation: "declared"}
				gopf.Want(r, own)
				return nil
			}, gopf.Owns[*corev1.ConfigMap](), gopf.Every(time.Minute))
			tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithSampler(sampler))
			if err := otel.With(op, tracers, sdkmetric.NewMeterProvider()); err != nil {
				t.Fatal(err)
			}
			stop = gopftest.Start(t, op, c, gopf.Log(slog.New(slog.DiscardHandler)))
			time.Sleep(5 * time.Second)
			return stop
		}
		written := func() (n int) {
			for _, r := range c.Writes() {
				if r.Resource == "configmaps" {
					n++
				}
			}
			return n
		}
		c.Create(t, object("x", nil))
		stop := start(sdktrace.AlwaysSample())
		trace, span := parentOf(t, c, "one")
		if !isSpan(spans, "turn kopfexamples.kopf.dev", trace, span) {
			t.Errorf("the new child has the trace %q and the span %q", trace, span)
		}
		if got := c.Get(t, configMaps, "default", "two").GetAnnotations()[otel.Annotation]; got != "declared" {
			t.Errorf("the declared annotation became %q", got)
		}
		writes, before := written(), calls.Load()
		time.Sleep(10 * time.Minute)
		if written() != writes || calls.Load() < before+5 {
			t.Errorf("%d calls caused %d writes of children", calls.Load()-before, written()-writes)
		}

		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		time.Sleep(5 * time.Second)
		next, span := parentOf(t, c, "one")
		if next == trace || !isSpan(spans, "turn kopfexamples.kopf.dev", next, span) || written() != writes+2 {
			t.Errorf("the changed child has the trace %q and the span %q, after %d writes", next, span, written()-writes)
		}
		stop()

		writes = written()
		stop = start(sdktrace.NeverSample())
		if written() != writes {
			t.Errorf("without traces, the start caused %d writes", written()-writes)
		}
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "c"}})
		time.Sleep(5 * time.Second)
		if trace, _ := parentOf(t, c, "one"); trace != "" || written() != writes+2 {
			t.Errorf("without traces, the changed child has the trace %q after %d writes", trace, written()-writes)
		}
		stop()
	})
}

func TestOnlyOwnedObjectsThatAHandlerCreatesHaveItsTrace(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	synctest.Test(t, func(t *testing.T) {
		c := gopftest.NewCluster(t, resource, configMaps)
		op := gopf.New()
		op.Resource(resource).OnCreate("make", func(ctx context.Context, c *gopf.Change[gopf.Unstructured]) error {
			if err := c.API.Create(ctx, child("other", "a")); err != nil {
				return err
			}
			if err := c.API.Apply(ctx, child("applied", "a"), client.OwnedBy(c.Object)); err != nil {
				return err
			}
			owned := child("owned", "a")
			if _, err := client.CreateIfAbsent(ctx, c.API, owned, client.OwnedBy(c.Object)); err != nil {
				return err
			}
			_, err := client.CreateIfAbsent(ctx, c.API, child("owned", "b"), client.OwnedBy(c.Object))
			return err
		})
		tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
		if err := otel.With(op, tracers, sdkmetric.NewMeterProvider()); err != nil {
			t.Fatal(err)
		}
		gopftest.Start(t, op, c, gopf.Log(slog.New(slog.DiscardHandler)))
		c.Create(t, object("x", nil))
		time.Sleep(5 * time.Second)
		if trace, span := parentOf(t, c, "owned"); !isSpan(spans, "handler make", trace, span) {
			t.Errorf("the owned object has the trace %q and the span %q", trace, span)
		}
		for _, name := range []string{"other", "applied"} { // an apply with it would write each time
			if trace, _ := parentOf(t, c, name); trace != "" {
				t.Errorf("%s has the trace %q", name, trace)
			}
		}
	})
}
