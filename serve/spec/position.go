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

// keys has the keys that the file gives for a struct. The decoder fills it.
type keys struct {
	lines map[string]Pos  // also of the entries of maps, as in "labels.tier"
	wrong map[string]bool // keys with a value of the wrong type, and misspelled keys
}

func (k *keys) keysOf() *keys { return k }

func (k *keys) add(key string, at Pos) {
	if k.lines == nil {
		k.lines = map[string]Pos{}
	}
	k.lines[key] = at
}

func (k *keys) reject(key string) {
	if k.wrong == nil {
		k.wrong = map[string]bool{}
	}
	k.wrong[key] = true
}

// given reports whether the file has a value for the key, other than null.
func (k *keys) given(key string) bool { _, ok := k.lines[key]; return ok }

// KeyPos returns the position of a key of the struct. Without the key, it is the position of
// the struct, of.
func (k *keys) KeyPos(of Pos, key string) Pos {
	if at, ok := k.lines[key]; ok {
		return at
	}
	return of
}

// rejected reports whether the decoder has reported one of the keys.
func (k *keys) rejected(keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return k.wrong[key] })
}

// Problem is a mistake in a file.
type Problem struct {
	Pos     Pos
	Text    string
	Warning bool // the text may be meant: the operator runs with it
}

func (p Problem) Error() string {
	if p.Warning {
		return p.Pos.String() + ": warning: " + p.Text
	}
	return p.Pos.String() + ": " + p.Text
}

// Problems is a list of mistakes and warnings. An empty list means none.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, one := range p {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Err returns the mistakes as an error, without the warnings. nil means that there are none.
func (p Problems) Err() error {
	var mistakes Problems
	for _, one := range p {
		if !one.Warning {
			mistakes = append(mistakes, one)
		}
	}
	if len(mistakes) == 0 {
		return nil
	}
	return mistakes
}

// Add adds a mistake.
func (p *Problems) Add(at Pos, format string, args ...any) {
	*p = append(*p, Problem{Pos: at, Text: fmt.Sprintf(format, args...)})
}

// Warn adds a warning.
func (p *Problems) Warn(at Pos, format string, args ...any) {
	*p = append(*p, Problem{Pos: at, Text: fmt.Sprintf(format, args...), Warning: true})
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
