package fakeobject

import (
	"context"
	"log/slog"
	"strings"
	"sync"
)

// Log is a handler that keeps what is logged, as lines of level and message. The
// zero value can be used.
type Log struct {
	// Detail is the key of an attribute whose value is kept, too.
	Detail string

	mu    sync.Mutex
	lines []string
}

// Enabled says that all levels are.
func (l *Log) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs ignores them.
func (l *Log) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup ignores it.
func (l *Log) WithGroup(string) slog.Handler { return l }

// Handle keeps a line.
func (l *Log) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == l.Detail {
			line += " " + a.Value.String()
		}
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	return nil
}

// Lines are those so far that begin so: "WARN".
func (l *Log) Lines(beginning string) (lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.HasPrefix(line, beginning) {
			lines = append(lines, line)
		}
	}
	return lines
}

// Take are the lines so far that begin so; all lines are forgotten.
func (l *Log) Take(beginning string) []string {
	lines := l.Lines(beginning)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = nil
	return lines
}
