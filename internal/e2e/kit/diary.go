package kit

import (
	"fmt"
	"slices"
	"sync"
	"testing"
)

// Diary is what handlers note down, line by line. The zero value is an empty one.
type Diary struct {
	mu    sync.Mutex
	lines []string
}

// Add notes a line.
func (d *Diary) Add(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

// All are the lines so far.
func (d *Diary) All() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}

// Take are the lines so far, which are forgotten.
func (d *Diary) Take() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer func() { d.lines = nil }()
	return d.lines
}

// Has tells whether the line was noted.
func (d *Diary) Has(line string) bool { return slices.Contains(d.All(), line) }

// Count is how many times the line was noted.
func (d *Diary) Count(line string) (n int) {
	for _, l := range d.All() {
		if l == line {
			n++
		}
	}
	return n
}

// WaitFor waits until the line is noted.
func (d *Diary) WaitFor(t *testing.T, line string) {
	t.Helper()
	Eventually(t, func() error {
		if !d.Has(line) {
			return fmt.Errorf("%q is not in %q", line, d.All())
		}
		return nil
	})
}

// Check compares the whole diary.
func (d *Diary) Check(t *testing.T, want ...string) {
	t.Helper()
	if got := d.All(); !slices.Equal(got, want) {
		t.Errorf("calls:\ngot  %q\nwant %q", got, want)
	}
}

// CheckNew compares what was noted since the last time that it was looked at so.
func (d *Diary) CheckNew(t *testing.T, want ...string) {
	t.Helper()
	if got := d.Take(); !slices.Equal(got, want) {
		t.Errorf("noted:\ngot  %q\nwant %q", got, want)
	}
}
