// Package otel sends traces and metrics of an operator to an OpenTelemetry collector.
//
//	op := gopf.New()
//	shutdown, err := otel.Use(op)
//
// A trace has a span for a turn of an object, below it one for each call of a handler, and
// below that one for each request to the API server. Turns that call no handler and send no
// request have no span. Timers, reviews and activities have traces without a turn. Daemons,
// probes and index functions have no spans: they run too long or too often.
//
// Names and namespaces of objects are only in spans, never in metrics. If a trace is sampled,
// the lines that handlers log with the logger of their argument, and the framework's lines about
// their outcomes and about the turn, have the fields trace_id and span_id. Children get the
// annotation [Annotation] when they are written anyway.
package otel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"gopf.dev/gopf"
)

// Use makes the operator send traces and metrics by OTLP. The standard variables configure
// it: OTEL_EXPORTER_OTLP_ENDPOINT and the other variables of the exporters,
// OTEL_TRACES_EXPORTER and OTEL_METRICS_EXPORTER (otlp or none), OTEL_TRACES_SAMPLER,
// OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES and OTEL_SDK_DISABLED. The protocol is
// http/protobuf, or grpc with OTEL_EXPORTER_OTLP_PROTOCOL. If no variable names an endpoint or
// the exporter otlp, Use does nothing, and tracing costs nothing.
//
// It must be called before the operator runs. The returned function sends the spans and
// metrics that wait; call it after [gopf.Operator.Run] has returned. It is never nil.
func Use(op *gopf.Operator) (shutdown func(context.Context) error, err error) {
	nothing := func(context.Context) error { return nil }
	traces, err := enabled("TRACES")
	if err != nil {
		return nothing, err
	}
	metrics, err := enabled("METRICS")
	if err != nil {
		return nothing, err
	}
	if !traces && !metrics {
		return nothing, nil
	}
	ctx := context.Background() // the exporters connect later, in the background
	var stops []func(context.Context) error
	shutdown = func(ctx context.Context) error {
		var all []error
		for _, stop := range stops {
			all = append(all, stop(ctx))
		}
		return errors.Join(all...)
	}
	var tracers trace.TracerProvider = tracenoop.NewTracerProvider()
	var meters metric.MeterProvider = metricnoop.NewMeterProvider()
	if traces {
		exporter, err := traceExporter(ctx)
		if err != nil {
			return nothing, fmt.Errorf("export traces: %w", err)
		}
		provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
		tracers, stops = provider, append(stops, provider.Shutdown)
	}
	if metrics {
		exporter, err := metricExporter(ctx)
		if err != nil {
			return nothing, errors.Join(fmt.Errorf("export metrics: %w", err), shutdown(ctx))
		}
		provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter)))
		meters, stops = provider, append(stops, provider.Shutdown)
	}
	if err := With(op, tracers, meters); err != nil {
		return nothing, errors.Join(err, shutdown(ctx))
	}
	return shutdown, nil
}

// enabled reports whether the variables turn on a signal, TRACES or METRICS.
func enabled(signal string) (bool, error) {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	switch name := "OTEL_" + signal + "_EXPORTER"; os.Getenv(name) {
	case "none":
		return false, nil
	case "otlp":
		return true, nil
	case "":
		return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != "", nil
	default:
		return false, fmt.Errorf("%s is %q; use otlp or none", name, os.Getenv(name))
	}
}

func traceExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	overGRPC, err := isGRPC("TRACES")
	switch {
	case err != nil:
		return nil, err
	case overGRPC:
		return otlptracegrpc.New(ctx)
	}
	return otlptracehttp.New(ctx)
}

func metricExporter(ctx context.Context) (sdkmetric.Exporter, error) {
	overGRPC, err := isGRPC("METRICS")
	switch {
	case err != nil:
		return nil, err
	case overGRPC:
		return otlpmetricgrpc.New(ctx)
	}
	return otlpmetrichttp.New(ctx)
}

// isGRPC reports whether the protocol of a signal is grpc.
func isGRPC(signal string) (bool, error) {
	switch protocol := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL")); protocol {
	case "", "http/protobuf":
		return false, nil
	case "grpc":
		return true, nil
	default:
		return false, fmt.Errorf("the protocol is %q; use http/protobuf or grpc", protocol)
	}
}
