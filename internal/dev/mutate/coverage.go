package main

import (
	"path"
	"path/filepath"
	"regexp"
	"strconv"
)

// coverage lists the code that tests reach, by file name as in profiles of go test.
type coverage map[string][]block

type block struct {
	fromLine, fromCol, toLine, toCol int
	reached                          bool
}

var profileLine = regexp.MustCompile(`(?m)^(.+):(\d+)\.(\d+),(\d+)\.(\d+) \d+ (\d+)$`)

// read adds a profile.
func (c coverage) read(profile string) {
	for _, parts := range profileLine.FindAllStringSubmatch(profile, -1) {
		var n [5]int
		for i := range n {
			n[i], _ = strconv.Atoi(parts[i+2]) // the expression matches only digits
		}
		c[parts[1]] = append(c[parts[1]], block{n[0], n[1], n[2], n[3], n[4] > 0})
	}
}

// reaches reports whether tests run the code of a mutant. Code outside of all blocks, such
// as declarations, counts as reached.
func (c coverage) reaches(m mutant, pkg string) bool {
	inside := false
	for _, b := range c[path.Join(pkg, filepath.Base(m.file))] {
		after := m.line > b.fromLine || m.line == b.fromLine && m.col >= b.fromCol
		before := m.line < b.toLine || m.line == b.toLine && m.col <= b.toCol
		if !after || !before {
			continue
		}
		if b.reached {
			return true
		}
		inside = true
	}
	return !inside
}
