package kit

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"gopf.dev/gopf/logs"
)

// Logbook records the output of an operator.
type Logbook struct {
	also io.Writer
	mu   sync.Mutex
	all  bytes.Buffer
}

// NewLogbook returns a Logbook that also writes each line to the output of the test. Use
// it in tests with one operator at a time.
func NewLogbook(t *testing.T) *Logbook { return &Logbook{also: t.Output()} }

// NewTitledLogbook returns a Logbook that is printed as a whole if the test fails. Use it
// in tests with several operators. Create it before the operator starts; then it is
// printed after the operator has stopped.
func NewTitledLogbook(t *testing.T, title string) *Logbook {
	l := &Logbook{also: io.Discard}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s:\n%s", title, l)
		}
	})
	return l
}

// Logger returns a logger for all levels that writes to the Logbook.
func (l *Logbook) Logger() *slog.Logger {
	return slog.New(logs.New(l, logs.Options{Format: logs.Full, Level: slog.LevelDebug, Prefix: true}))
}

// Write implements io.Writer.
func (l *Logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all.Write(p)
	return l.also.Write(p)
}

// String returns the whole output.
func (l *Logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// With returns the lines that contain all of the texts.
func (l *Logbook) With(texts ...string) (found []string) {
	for line := range strings.Lines(l.String()) {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			found = append(found, strings.TrimSuffix(line, "\n"))
		}
	}
	return found
}

// Has reports whether a line contains all of the texts.
func (l *Logbook) Has(texts ...string) bool { return len(l.With(texts...)) > 0 }

// WaitFor waits for a line that contains all of the texts.
func (l *Logbook) WaitFor(t *testing.T, texts ...string) {
	t.Helper()
	Await(t, fmt.Sprintf("a line with %q", texts), func() bool { return l.Has(texts...) })
}
