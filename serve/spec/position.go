package spec

import (
	"fmt"
	"slices"
	"strings"
)

// Pos is a position in a file. The decoder fills it in the structs that embed it.
type Pos struct {
	File string `json:"-"`
	Line int    `json:"-"`
}

// String returns the position as "file:line".
func (p Pos) String() string { return fmt.Sprintf("%s:%d", p.File, p.Line) }

func (p *Pos) setPos(q Pos) { *p = q }

// Problem is a mistake in a file.
type Problem struct {
	Pos  Pos
	Text string
}

func (p Problem) Error() string { return p.Pos.String() + ": " + p.Text }

// Problems is a list of mistakes. An empty list means none.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, one := range p {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Err returns the problems as an error. nil means that there are none.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

// Add adds a problem.
func (p *Problems) Add(at Pos, format string, args ...any) {
	*p = append(*p, Problem{at, fmt.Sprintf(format, args...)})
}

// Sorted returns the problems in the order of files and lines, without repetitions.
func (p Problems) Sorted() Problems {
	p.sort()
	return slices.Compact(p)
}

func (p Problems) sort() {
	slices.SortStableFunc(p, func(a, b Problem) int {
		if a.Pos.File != b.Pos.File {
			return strings.Compare(a.Pos.File, b.Pos.File)
		}
		return a.Pos.Line - b.Pos.Line
	})
}
