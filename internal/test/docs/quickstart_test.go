package docs

import (
	"strings"
	"testing"
)

// TestTheQuickstartLeadsToATestedOperator does what a reader of docs/quickstart.md does, up to
// the tests in memory.
func TestTheQuickstartLeadsToATestedOperator(t *testing.T) {
	chapters := strings.Split(readPage(t, "docs/quickstart.md").text, "\n## ")[1:]
	if len(chapters) != 5 {
		t.Fatalf("the quickstart has %d chapters", len(chapters))
	}
	r := begin(t, chapters[0])
	gopf := buildTool(t)
	for _, chapter := range chapters[1:] {
		title, _, _ := strings.Cut(chapter, "\n")
		r.follow(t, title, chapter, gopf)
	}
	r.run(t, "the end", "go", "vet", "./...")
	r.run(t, "the end", "go", "test", "-v", "./...")
}
