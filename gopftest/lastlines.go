package gopftest

import (
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
)

// maxLines limits the log lines that a failed test prints.
const maxLines = 200

// lastLines keeps the last log lines of a test.
type lastLines struct {
	mu      sync.Mutex
	lines   []string
	next    int // the index of the oldest line, when there are maxLines
	dropped int
}

func (l *lastLines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) < maxLines {
		l.lines = append(l.lines, string(line))
		return len(line), nil
	}
	l.lines[l.next] = string(line)
	l.next = (l.next + 1) % maxLines
	l.dropped++
	return len(line), nil
}

// print writes the lines in their order.
func (l *lastLines) print(w io.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dropped > 0 {
		fmt.Fprintf(w, "(%d earlier log lines are left out; run the test with -v to see all)\n", l.dropped)
	}
	for i := range l.lines {
		_, _ = io.WriteString(w, l.lines[(l.next+i)%len(l.lines)])
	}
}

// outputOf returns the writer for the log lines of a test, and their lowest level. With -v,
// all lines are written at once. Otherwise a failed test prints the last lines from INFO
// on when it ends.
func outputOf(t testing.TB, verbose bool) (io.Writer, slog.Level) {
	if verbose {
		return t.Output(), slog.LevelDebug
	}
	last := &lastLines{}
	t.Cleanup(func() {
		if t.Failed() {
			last.print(t.Output())
		}
	})
	return last, slog.LevelInfo
}
