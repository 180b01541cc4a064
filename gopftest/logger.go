package gopftest

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"gopf.dev/gopf/logs"
)

// logger returns a logger that writes to the test's log; see outputOf.
func logger(t testing.TB) *slog.Logger {
	out, level := outputOf(t, testing.Verbose())
	return slog.New(logs.New(out, logs.Options{Format: logs.Full, Level: level, Prefix: true}))
}

// teeHandler passes log records to several handlers.
type teeHandler []slog.Handler

// Enabled implements slog.Handler.
func (hs teeHandler) Enabled(ctx context.Context, level slog.Level) bool {
	for _, h := range hs {
		if h.Enabled(ctx, level) {
			return true
		}
	}
	return false
}

// Handle implements slog.Handler.
func (hs teeHandler) Handle(ctx context.Context, r slog.Record) error {
	var errs []error
	for _, h := range hs {
		if h.Enabled(ctx, r.Level) {
			errs = append(errs, h.Handle(ctx, r.Clone()))
		}
	}
	return errors.Join(errs...)
}

// WithAttrs implements slog.Handler.
func (hs teeHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	var with teeHandler
	for _, h := range hs {
		with = append(with, h.WithAttrs(attrs))
	}
	return with
}

// WithGroup implements slog.Handler.
func (hs teeHandler) WithGroup(name string) slog.Handler {
	var with teeHandler
	for _, h := range hs {
		with = append(with, h.WithGroup(name))
	}
	return with
}
