package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheTableOfServersHasEveryFeature compares the table of older API servers with the
// features that clusters in memory can do without.
func TestTheTableOfServersHasEveryFeature(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(root, "gopftest/older.go"))
	if err != nil {
		t.Fatal(err)
	}
	features := regexp.MustCompile(`(?m)^\t\w+ +Feature = "(.+)"$`).FindAllStringSubmatch(string(source), -1)
	if len(features) < 5 {
		t.Fatalf("only these features are found: %v", features)
	}
	_, section, _ := strings.Cut(readPage(t, "docs/deployment.md").text, "## Versions of Kubernetes")
	var rows []string
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "| ") {
			rows = append(rows, line)
		}
	}
	table := strings.Join(rows, "")
	for _, feature := range features {
		if !strings.Contains(table, "`"+feature[1]+"`") {
			t.Errorf("the table has no row about %s", feature[1])
		}
	}
}
