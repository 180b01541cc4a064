package admission

import (
	"context"
	"log/slog"

	"gopf.dev/gopf/internal/loglimit"
)

// lines limits the log lines about the calls of one handler. Any client that reaches the
// server can cause a line with each review.
type lines struct{ ordinary, failures loglimit.Bucket }

// limited returns a logger for lines about the calls of the handler with the id.
func (v *Reviewer) limited(id string, log *slog.Logger) *slog.Logger {
	of, ok := v.lines.Load(id)
	if !ok {
		of, _ = v.lines.LoadOrStore(id, &lines{})
	}
	return slog.New(limitedLog{log.Handler(), of.(*lines)})
}

type limitedLog struct {
	slog.Handler
	of *lines
}

func (l limitedLog) Handle(ctx context.Context, r slog.Record) error {
	bucket := &l.of.ordinary
	if r.Level >= slog.LevelWarn {
		bucket = &l.of.failures
	}
	ok, suppressed := bucket.Allow()
	if !ok {
		return nil
	}
	if suppressed > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("suppressed", suppressed))
	}
	return l.Handler.Handle(ctx, r)
}

func (l limitedLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return limitedLog{l.Handler.WithAttrs(attrs), l.of}
}

func (l limitedLog) WithGroup(name string) slog.Handler {
	return limitedLog{l.Handler.WithGroup(name), l.of}
}
