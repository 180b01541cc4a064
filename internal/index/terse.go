package index

import (
	"context"
	"log/slog"
)

// terse returns a logger for messages that occur with every event of every object: it
// lowers levels below WARN by one.
func terse(log *slog.Logger) *slog.Logger { return slog.New(lowered{log.Handler()}) }

type lowered struct{ slog.Handler }

func (h lowered) Enabled(ctx context.Context, level slog.Level) bool {
	return h.Handler.Enabled(ctx, lower(level))
}

func (h lowered) Handle(ctx context.Context, r slog.Record) error {
	r.Level = lower(r.Level)
	return h.Handler.Handle(ctx, r)
}

func (h lowered) WithAttrs(attrs []slog.Attr) slog.Handler {
	return lowered{h.Handler.WithAttrs(attrs)}
}
func (h lowered) WithGroup(name string) slog.Handler { return lowered{h.Handler.WithGroup(name)} }

func lower(level slog.Level) slog.Level {
	if level < slog.LevelWarn {
		return level - (slog.LevelInfo - slog.LevelDebug)
	}
	return level
}
