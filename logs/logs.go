// Package logs prints log lines of operators: as text for people, or as JSON
// for machines. It can be used wherever a [slog.Handler] can:
//
//	log := slog.New(logs.New(os.Stderr, logs.Options{Format: logs.Full, Prefix: true}))
//
// Messages and attributes are cut at 8 KiB each. In text formats, newlines, control
// characters and escape sequences are escaped as in Go strings, so that the text of
// an object cannot forge a line or control a terminal. Only the attributes "stack"
// and "manifest" keep their newlines: they are printed below the line.
package logs

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"sync"
)

// Format is how lines look like.
type Format string

// The formats.
const (
	Plain Format = "plain" // only the message
	Full  Format = "full"  // with the time, the logger and the level
	JSON  Format = "json"  // one JSON object a line
	Short Format = "short" // with the time of day and the level, for terminals
)

// Object is the key under which the framework puts a reference to the object
// that a line is about: a group of apiVersion, kind, name, namespace and uid.
const Object = "object"

// Logger is the key under which the name of the logger is put, if it has one.
const Logger = "logger"

// Options say how lines look like. The zero value prints only messages.
type Options struct {
	Format Format
	Level  slog.Leveler // the least to be printed; nil is slog.LevelInfo
	Prefix bool         // begin messages about objects with "[namespace/name] "
	RefKey string       // where JSON lines have the object; "" is "object"
	Colour bool         // colour levels, prefixes and the like, for terminals
}

// New makes a handler that prints to w, one line at a time.
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
	groups  []string // open ones, for attributes to come

	mu  *sync.Mutex // of out; shared by all handlers made from one
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
