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

// Logbook keeps what an operator prints.
type Logbook struct {
	also io.Writer
	mu   sync.Mutex
	all  bytes.Buffer
}

// NewLogbook makes one that belongs to the output of the test line by line, for
// tests with one operator at a time.
func NewLogbook(t *testing.T) *Logbook { return &Logbook{also: t.Output()} }

// NewTitledLogbook makes one that is printed as a whole if the test fails, for tests
// with several operators. It must be made before what ends the operator with the
// test, so as to have all of it.
func NewTitledLogbook(t *testing.T, title string) *Logbook {
	l := &Logbook{also: io.Discard}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s:\n%s", title, l)
		}
	})
	return l
}

// Logger makes a logger of all levels that writes here.
func (l *Logbook) Logger() *slog.Logger {
	return slog.New(logs.New(l, logs.Options{Format: logs.Full, Level: slog.LevelDebug, Prefix: true}))
}

// Write keeps what is printed.
func (l *Logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all.Write(p)
	return l.also.Write(p)
}

// String is all that was printed.
func (l *Logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// With are the lines that contain all of the texts.
func (l *Logbook) With(texts ...string) (found []string) {
	for line := range strings.Lines(l.String()) {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			found = append(found, strings.TrimSuffix(line, "\n"))
		}
	}
	return found
}

// Has tells whether a line contains all of the texts.
func (l *Logbook) Has(texts ...string) bool { return len(l.With(texts...)) > 0 }

// WaitFor waits for a line that contains all of the texts.
func (l *Logbook) WaitFor(t *testing.T, texts ...string) {
	t.Helper()
	Await(t, fmt.Sprintf("a line with %q", texts), func() bool { return l.Has(texts...) })
}
