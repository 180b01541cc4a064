package kit

import (
	"fmt"
	"slices"
	"sync"
	"testing"
)

// Diary records lines of handlers. The zero value is empty and ready for use.
type Diary struct {
	mu    sync.Mutex
	lines []string
}

// Add adds a line.
func (d *Diary) Add(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

// All returns the lines so far.
func (d *Diary) All() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}

// Take returns the lines so far, and removes them.
func (d *Diary) Take() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer func() { d.lines = nil }()
	return d.lines
}

// Has reports whether the diary contains the line.
func (d *Diary) Has(line string) bool { return slices.Contains(d.All(), line) }

// Count returns how many times the diary contains the line.
func (d *Diary) Count(line string) (n int) {
	for _, l := range d.All() {
		if l == line {
			n++
		}
	}
	return n
}

// WaitFor waits until the diary contains the line.
func (d *Diary) WaitFor(t *testing.T, line string) {
	t.Helper()
	Eventually(t, func() error {
		if !d.Has(line) {
			return fmt.Errorf("%q is not in %q", line, d.All())
		}
		return nil
	})
}

// Check compares all lines.
func (d *Diary) Check(t *testing.T, want ...string) {
	t.Helper()
	if got := d.All(); !slices.Equal(got, want) {
		t.Errorf("calls:\ngot  %q\nwant %q", got, want)
	}
}

// CheckNew compares the lines since the last CheckNew or Take.
func (d *Diary) CheckNew(t *testing.T, want ...string) {
	t.Helper()
	if got := d.Take(); !slices.Equal(got, want) {
		t.Errorf("new calls:\ngot  %q\nwant %q", got, want)
	}
}
