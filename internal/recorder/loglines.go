package recorder

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"

	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/logs"
)

// FromLogs returns a log handler that passes all records on, and posts records about
// objects as events if they have at least the given level. The object must be attached
// to the logger as [logs.Object].
func FromLogs(next slog.Handler, level slog.Level, post func(Event)) slog.Handler {
	text := &sink{}
	return &logHandler{
		next: next, level: level, post: post, sink: text,
		text: logs.New(text, logs.Options{Format: logs.Plain, Level: level}),
	}
}

type logHandler struct {
	next  slog.Handler
	level slog.Level
	post  func(Event)
	about object.Identity // no object if the name is empty

	// The text of an event is the record in the plain format.
	sink *sink
	text slog.Handler
}

func (h *logHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.posts(level) || h.next.Enabled(ctx, level)
}

func (h *logHandler) posts(level slog.Level) bool { return h.about.Name != "" && level >= h.level }

func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	if h.posts(r.Level) {
		if message, err := h.sink.line(ctx, h.text, r); err == nil {
			h.post(Event{About: h.about, Type: eventType(r.Level), Reason: "Logging", Message: message})
		}
	}
	if !h.next.Enabled(ctx, r.Level) {
		return nil
	}
	return h.next.Handle(ctx, r)
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	derived := *h
	derived.next, derived.text = h.next.WithAttrs(attrs), h.text.WithAttrs(attrs)
	for _, a := range attrs {
		if a.Key == logs.Object && a.Value.Kind() == slog.KindGroup {
			derived.about = identity(a.Value.Group())
		}
	}
	return &derived
}

func (h *logHandler) WithGroup(name string) slog.Handler {
	derived := *h
	derived.next, derived.text = h.next.WithGroup(name), h.text.WithGroup(name)
	return &derived
}

func identity(attrs []slog.Attr) (about object.Identity) {
	for _, a := range attrs {
		switch text := a.Value.String(); a.Key {
		case "apiVersion":
			about.APIVersion = text
		case "kind":
			about.Kind = text
		case "name":
			about.Name = text
		case "namespace":
			about.Namespace = text
		case "uid":
			about.UID = text
		}
	}
	return about
}

func eventType(level slog.Level) string {
	switch {
	case level < slog.LevelInfo:
		return "Debug"
	case level < slog.LevelWarn:
		return "Normal"
	case level < slog.LevelError:
		return "Warning"
	}
	return "Error"
}

// sink collects formatted records, one at a time.
type sink struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *sink) Write(p []byte) (int, error) { return s.buf.Write(p) }

func (s *sink) line(ctx context.Context, printer slog.Handler, r slog.Record) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf.Reset()
	err := printer.Handle(ctx, r)
	return strings.TrimRight(s.buf.String(), "\n"), err
}
