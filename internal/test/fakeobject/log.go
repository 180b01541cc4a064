package fakeobject

import (
	"context"
	"log/slog"
	"strings"
	"sync"
)

// Log is a slog.Handler that records lines of level and message. The zero value is ready
// for use.
type Log struct {
	// Detail is the key of an attribute whose value is also recorded.
	Detail string

	mu    sync.Mutex
	lines []string
}

// Enabled implements slog.Handler. All levels are enabled.
func (l *Log) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs implements slog.Handler. It ignores the attributes.
func (l *Log) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup implements slog.Handler. It ignores the group.
func (l *Log) WithGroup(string) slog.Handler { return l }

// Handle implements slog.Handler.
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

// Lines returns the lines so far that begin with the text, for example "WARN".
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

// Take returns the lines so far that begin with the text, and removes all lines.
func (l *Log) Take(beginning string) []string {
	lines := l.Lines(beginning)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = nil
	return lines
}
