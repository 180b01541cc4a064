// Package tracing carries the trace of a turn or of a call in the context, for the log lines
// of the framework and for the children that it writes. Module otel puts it there. Without a
// tracer, no context has a trace, and nothing is allocated.
package tracing

import (
	"context"
	"log/slog"
	"maps"
)

// Annotation is the annotation of objects whose value is a W3C traceparent.
const Annotation = "opentelemetry.io/traceparent"

// Span identifies a sampled span. The zero value means that there is none.
type Span struct {
	TraceID, SpanID string
	Parent          string // as a W3C traceparent
}

// Current returns the span of a turn or of a call at this moment. A turn has none before its
// first call or request. It is safe for concurrent use.
type Current func() Span

type key struct{}

// With returns a context with a trace. nil hides the trace of the context.
func With(ctx context.Context, current Current) context.Context {
	return context.WithValue(ctx, key{}, current)
}

// Of returns the span of the context.
func Of(ctx context.Context) Span {
	if current := from(ctx); current != nil {
		return current()
	}
	return Span{}
}

func from(ctx context.Context) Current {
	current, _ := ctx.Value(key{}).(Current)
	return current
}

// Stamp writes the traceparent of the context into the annotations of a manifest, which it
// may change. It does nothing if the context has no span, or if the manifest has the annotation
// already. The annotation differs in each trace, so it must be part only of writes that
// change the object anyway.
func Stamp(ctx context.Context, manifest map[string]any) {
	parent := Of(ctx).Parent
	if parent == "" {
		return
	}
	metadata := inside(manifest, "metadata")
	annotations := inside(metadata, "annotations")
	if annotations[Annotation] == nil {
		annotations[Annotation] = parent
	}
}

// inside replaces the object at a key by a copy, which it returns.
func inside(of map[string]any, key string) map[string]any {
	at, _ := of[key].(map[string]any)
	copied := make(map[string]any, len(at)+1)
	maps.Copy(copied, at)
	of[key] = copied
	return copied
}

// Log returns a logger whose lines have the fields trace_id and span_id of the context. It
// returns the same logger if the context has no trace.
func Log(ctx context.Context, log *slog.Logger) *slog.Logger {
	current := from(ctx)
	if current == nil {
		return log
	}
	return slog.New(&lines{log.Handler(), current})
}

// lines adds the span to each line when the line is logged: the span of a turn may start
// after its logger was made.
type lines struct {
	slog.Handler
	current Current
}

func (l *lines) Handle(ctx context.Context, r slog.Record) error {
	if span := l.current(); span.TraceID != "" {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", span.TraceID), slog.String("span_id", span.SpanID))
	}
	return l.Handler.Handle(ctx, r)
}

func (l *lines) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &lines{l.Handler.WithAttrs(attrs), l.current}
}

func (l *lines) WithGroup(name string) slog.Handler {
	return &lines{l.Handler.WithGroup(name), l.current}
}
