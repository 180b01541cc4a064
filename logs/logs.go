// Package logs formats the log lines of operators, as text for people or as JSON for
// machines. Its handler works with any [slog.Logger]:
//
//	log := slog.New(logs.New(os.Stderr, logs.Options{Format: logs.Full, Prefix: true}))
//
// Messages and attributes are cut at 8 KiB each, names of objects at 512 bytes. Text formats escape newlines, control
// characters and escape sequences as in Go strings, because the text of an object must not
// forge a line or control a terminal. Only the attributes "stack" and "manifest" keep their
// newlines: they are printed below the line.
package logs

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"sync"
)

// Format is the format of log lines.
type Format string

// The formats.
const (
	Plain Format = "plain" // only the message
	Full  Format = "full"  // with the time, the logger and the level
	JSON  Format = "json"  // one JSON object per line
	Short Format = "short" // with the time of day and the level, for terminals
)

// Object is the attribute key of the reference to the object of a line: a group of
// apiVersion, kind, name, namespace and uid.
const Object = "object"

// Logger is the attribute key of the logger's name.
const Logger = "logger"

// Options configure the handler. The zero value prints only messages.
type Options struct {
	Format Format
	Level  slog.Leveler // minimum level; nil means slog.LevelInfo
	Prefix bool         // begin messages about objects with "[namespace/name] "
	RefKey string       // key of the object in JSON lines; empty means "object"
	Colour bool         // color levels and prefixes, for terminals
}

// New returns a handler that writes to w, one line per call. It is safe for concurrent use.
func New(w io.Writer, o Options) slog.Handler {
	if o.Level == nil {
		o.Level = slog.LevelInfo
	}
	if o.RefKey == "" {
		o.RefKey = Object
	}
	return &handler{options: o, out: w, mu: &sync.Mutex{}}
}

type handler struct {
	options Options
	attrs   []slog.Attr
	groups  []string // open groups for later attributes

	mu  *sync.Mutex // protects out; shared by all derived handlers
	out io.Writer
}

func (h *handler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= h.options.Level.Level()
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	derived := *h
	derived.attrs = append(slices.Clip(h.attrs), h.grouped(attrs)...)
	return &derived
}

func (h *handler) WithGroup(name string) slog.Handler {
	derived := *h
	if name != "" {
		derived.groups = append(slices.Clip(h.groups), name)
	}
	return &derived
}

// grouped puts attributes into the open groups.
func (h *handler) grouped(attrs []slog.Attr) []slog.Attr {
	for _, name := range slices.Backward(h.groups) {
		attrs = []slog.Attr{{Key: name, Value: slog.GroupValue(attrs...)}}
	}
	return attrs
}

func (h *handler) Handle(_ context.Context, r slog.Record) error {
	attrs := slices.Clip(h.attrs)
	own := make([]slog.Attr, 0, r.NumAttrs())
	r.Attrs(func(a slog.Attr) bool {
		own = append(own, a)
		return true
	})
	l := line{time: r.Time, level: r.Level, message: r.Message}
	for _, a := range append(attrs, h.grouped(own)...) {
		a.Value = a.Value.Resolve()
		switch {
		case a.Key == Object && a.Value.Kind() == slog.KindGroup:
			l.object = a.Value.Group()
		case a.Key == Logger:
			l.logger = a.Value.String()
		case !a.Equal(slog.Attr{}):
			l.attrs = append(l.attrs, a)
		}
	}
	var text []byte
	if h.options.Format == JSON {
		text = l.json(h.options)
	} else {
		text = l.text(h.options)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := h.out.Write(text)
	return err
}
