package docs

import (
	"fmt"
	"strings"
	"testing"
)

// TestLanguageStaysPlain counts the lines with [phrases] in each area. A
// count above the limit fails, and so does a limit that could be lower.
func TestLanguageStaysPlain(t *testing.T) {
	found := map[string]map[kindOfText][]hit{}
	for _, a := range areas {
		found[a.path] = map[kindOfText][]hit{}
	}
	all := matchers()
	for _, p := range paragraphs(t) {
		a := areaOf(p.file)
		found[a.path][p.kind] = append(found[a.path][p.kind], search(p, all)...)
	}
	var lower strings.Builder // the table with the lowest limits that pass
	for _, a := range areas {
		fmt.Fprintf(&lower, "\n\t{path: %q", a.path)
		for _, c := range []struct {
			kind  kindOfText
			limit int
		}{{inPage, a.pages}, {inComment, a.comments}, {inMessage, a.messages}} {
			hits := found[a.path][c.kind]
			n := linesOf(hits)
			fmt.Fprintf(&lower, ", %ss: %d", c.kind, min(n, c.limit))
			switch {
			case n > c.limit:
				t.Errorf("%s: %d lines of %ss have phrases that CONTRIBUTING.md rules out; at most %d are allowed:\n%s", a.path, n, c.kind, c.limit, listed(hits))
			case n < c.limit-slack:
				t.Errorf("%s: only %d lines of %ss have phrases that CONTRIBUTING.md rules out; lower the limit of %d to %d", a.path, n, c.kind, c.limit, n)
			}
		}
		lower.WriteString("},")
	}
	if t.Failed() {
		t.Logf("limits for language_areas_test.go:%s", &lower)
	}
}

// hit is a match of a phrase.
type hit struct {
	file string
	line int
	text string
	rule string
}

// search returns the matches in a paragraph, ordered by line.
func search(p paragraph, all map[string][]matcher) (hits []hit) {
	text := p.text()
	words := wordsOf(text)
	for i, w := range words {
		for _, m := range all[w.lower] {
			if n := m.match(words[i:]); n > 0 {
				end := words[i+n-1].end
				hits = append(hits, hit{p.file, p.lineAt(w.at), strings.TrimSpace(text[w.at:end]), m.rule})
			}
		}
	}
	return hits
}

// linesOf returns the number of different lines among the hits.
func linesOf(hits []hit) int {
	lines := map[string]bool{}
	for _, h := range hits {
		lines[fmt.Sprint(h.file, ":", h.line)] = true
	}
	return len(lines)
}

// listed returns the first hits as text, one per line.
func listed(hits []hit) string {
	const most = 100
	var b strings.Builder
	for _, h := range hits[:min(len(hits), most)] {
		fmt.Fprintf(&b, "  %s:%d: %q (%s)\n", h.file, h.line, h.text, h.rule)
	}
	if len(hits) > most {
		fmt.Fprintf(&b, "  and %d more\n", len(hits)-most)
	}
	return b.String()
}
