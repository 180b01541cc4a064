package otel

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/terminal"
	"gopf.dev/gopf/internal/tracing"
	"gopf.dev/gopf/kind"
)

// Scope is the name of the instrumentation scope of all spans and metrics.
const Scope = "gopf.dev/gopf/otel"

// Annotation is the annotation of objects whose value is a W3C traceparent. The spans of turns
// and handlers of such an object link to that trace. Children of objects get it from the turn or
// the handler that writes them.
const Annotation = tracing.Annotation

// With is [Use] with other providers, for programs that have some already.
func With(op *gopf.Operator, tracers trace.TracerProvider, meters metric.MeterProvider) error {
	o := &observer{tracer: tracers.Tracer(Scope)}
	meter := meters.Meter(Scope)
	var err error
	if o.handlers, err = meter.Float64Histogram("gopf.handler.duration", metric.WithUnit("s"), metric.WithDescription("Duration of handler calls.")); err != nil {
		return err
	}
	if o.requests, err = meter.Float64Histogram("gopf.api.request.duration", metric.WithUnit("s"), metric.WithDescription("Duration of requests to the API server in turns and calls, until the response.")); err != nil {
		return err
	}
	op.AroundTurns(o.turn)
	op.Around(o.call)
	inner := op.Settings.Networking.Transport
	op.Settings.Networking.Transport = func(next http.RoundTripper) http.RoundTripper {
		if inner != nil {
			next = inner(next)
		}
		return &transport{next, o}
	}
	return nil
}

type observer struct {
	tracer             trace.Tracer
	handlers, requests metric.Float64Histogram
}

// turn is a turn of an object. Its span starts with the first call or request.
type turn struct {
	observer *observer
	call     *gopf.Call
	began    time.Time

	mu    sync.Mutex
	span  trace.Span // nil means that it has not started
	ended bool
}

type turnKey struct{}

// turn begins a turn. It belongs to no other trace, even if the context of the operator has one.
func (o *observer) turn(ctx context.Context, call *gopf.Call) (context.Context, func()) {
	t := &turn{observer: o, call: call, began: time.Now()}
	ctx = trace.ContextWithSpan(context.WithValue(ctx, turnKey{}, t), nil)
	return tracing.With(ctx, t.current), t.end
}

// start returns the span of the turn. nil means that the turn is over.
func (t *turn) start(links []trace.Link) trace.Span {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.span == nil && !t.ended {
		_, t.span = t.observer.tracer.Start(context.Background(), "turn "+name(t.call.Resource), trace.WithNewRoot(), trace.WithTimestamp(t.began),
			trace.WithAttributes(object(t.call)...), trace.WithLinks(links...))
	}
	if t.ended {
		return nil
	}
	return t.span
}

// current returns the span of the turn, if it has started.
func (t *turn) current() tracing.Span {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.span == nil {
		return tracing.Span{}
	}
	return spanOf(t.span)
}

// spanOf returns a span if it is sampled.
func spanOf(span trace.Span) tracing.Span {
	of := span.SpanContext()
	if !of.IsSampled() {
		return tracing.Span{}
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(context.Background(), of), carrier)
	return tracing.Span{TraceID: of.TraceID().String(), SpanID: of.SpanID().String(), Parent: carrier["traceparent"]}
}

func (t *turn) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended = true; t.span != nil {
		t.span.End()
	}
}

// within returns the context with the span that calls and requests are in. It is false if there is
// none.
func within(ctx context.Context, links []trace.Link) (context.Context, bool) {
	if trace.SpanContextFromContext(ctx).IsValid() {
		return ctx, true
	}
	t, _ := ctx.Value(turnKey{}).(*turn)
	if t == nil {
		return ctx, false
	}
	span := t.start(links)
	if span == nil {
		return ctx, false
	}
	return trace.ContextWithSpan(ctx, span), true
}

// detached returns the context without a turn. Daemons and timers start in a turn, and outlive it.
func detached(ctx context.Context) context.Context {
	return tracing.With(trace.ContextWithSpan(context.WithValue(ctx, turnKey{}, (*turn)(nil)), nil), nil)
}

// call observes the call of a handler.
func (o *observer) call(ctx context.Context, c *gopf.Call, next func(context.Context) error) error {
	switch c.Type {
	case "daemon":
		return next(detached(ctx))
	case "timer":
		ctx = detached(ctx)
	case "index", "probe":
		return next(ctx)
	}
	links := linksOf(c)
	options := []trace.SpanStartOption{
		trace.WithLinks(links...), trace.WithAttributes(object(c)...),
		trace.WithAttributes(attribute.String("gopf.handler", c.Handler), attribute.String("gopf.handler.type", c.Type), attribute.Int("gopf.handler.retry", c.Retry)),
	}
	if c.Reason != 0 {
		options = append(options, trace.WithAttributes(attribute.String("gopf.reason", c.Reason.String())))
	}
	ctx, inside := within(ctx, links)
	if !inside {
		options = append(options, trace.WithNewRoot())
	}
	ctx, span := o.tracer.Start(ctx, "handler "+c.Handler, options...)
	of := spanOf(span)
	if of.TraceID != "" {
		c.Log = c.Log.With("trace_id", of.TraceID, "span_id", of.SpanID)
	}
	ctx = tracing.With(ctx, func() tracing.Span { return of })
	began := time.Now()
	outcome := "panicked"
	defer func() {
		span.SetAttributes(attribute.String("gopf.outcome", outcome))
		span.End()
		root, _, _ := strings.Cut(c.Handler, "/") // ids of sub-handlers may come from data
		o.handlers.Record(ctx, time.Since(began).Seconds(), metric.WithAttributes(
			attribute.String("gopf.handler", root), attribute.String("gopf.handler.type", c.Type), attribute.String("gopf.resource", name(c.Resource)), attribute.String("gopf.outcome", outcome)))
	}()
	err := next(ctx)
	outcome = outcomeOf(err)
	if err != nil && outcome != "waiting" {
		span.RecordError(shortened(err))
		span.SetStatus(codes.Error, outcome)
	}
	return err
}

// longestError limits the text of an error in a span, in bytes. Thousands of spans wait for the
// exporter, and errors of handlers may quote objects of tenants.
const longestError = 8 << 10

// shortened returns the error, or one with the start and the end of its text.
func shortened(err error) error {
	if text := err.Error(); len(text) > longestError {
		return errors.New(terminal.CutMiddle(text, longestError))
	}
	return err
}

// outcomeOf returns how a call ended, from its error.
func outcomeOf(err error) string {
	temporary, isTemporary := errors.AsType[*gopf.TemporaryError](err)
	_, isPermanent := errors.AsType[*gopf.PermanentError](err)
	switch {
	case err == nil:
		return "succeeded"
	case isTemporary && temporary.Waiting():
		return "waiting"
	case isTemporary:
		return "retried"
	case isPermanent:
		return "failed"
	}
	return "error" // the options of the handler decide about another attempt
}

// linksOf returns the link to the trace that the object names.
func linksOf(c *gopf.Call) []trace.Link {
	text := c.Annotation(Annotation)
	if text == "" {
		return nil
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": text})
	if of := trace.SpanContextFromContext(ctx); of.IsValid() {
		return []trace.Link{{SpanContext: of}}
	}
	return nil
}

// object returns the attributes of the object of a call.
func object(c *gopf.Call) []attribute.KeyValue {
	if c.Resource.Plural == "" {
		return nil
	}
	all := []attribute.KeyValue{attribute.String("gopf.resource", name(c.Resource)), attribute.String("gopf.object.name", c.Name), attribute.String("gopf.object.uid", c.UID)}
	if c.Namespace != "" {
		all = append(all, attribute.String("k8s.namespace.name", c.Namespace))
	}
	return all
}

// name returns the name of a resource, such as databases.example.com.
func name(of kind.Info) string { return strings.TrimSuffix(of.Plural+"."+of.Group, ".") }
