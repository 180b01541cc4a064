package process

import (
	"context"
	"log/slog"
	"sync"

	"gopf.dev/gopf/internal/object"
)

// objectLog is a handler that adds an object to log lines. It builds the attributes
// only when a line is logged: most turns log none.
type objectLog struct {
	to   slog.Handler
	kind *Processor
	body *object.Body

	once sync.Once
	with slog.Handler // to with the attributes
}

func (o *objectLog) attached() slog.Handler {
	o.once.Do(func() {
		o.with = o.to.WithAttrs([]slog.Attr{slog.GroupAttrs("object",
			slog.String("apiVersion", o.kind.Resource.APIVersion()),
			slog.String("kind", o.kind.Resource.Kind),
			slog.String("name", o.body.Name),
			slog.String("namespace", o.body.Namespace),
			slog.String("uid", o.body.UID),
		)})
	})
	return o.with
}

func (o *objectLog) Enabled(ctx context.Context, l slog.Level) bool { return o.to.Enabled(ctx, l) }

func (o *objectLog) Handle(ctx context.Context, r slog.Record) error {
	return o.attached().Handle(ctx, r)
}

func (o *objectLog) WithAttrs(attrs []slog.Attr) slog.Handler { return o.attached().WithAttrs(attrs) }

func (o *objectLog) WithGroup(name string) slog.Handler { return o.attached().WithGroup(name) }
