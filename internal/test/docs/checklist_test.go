package docs

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestTheChecklistIsComplete looks for every public name of Kopf, with a link
// where it is ticked, and with a reason where it is not.
func TestTheChecklistIsComplete(t *testing.T) {
	raw, err := os.ReadFile("testdata/kopf-names.txt")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	row := regexp.MustCompile(`(?m)^\| \[(.)\] \| ([^|]+) \| (.*) \|$`)
	for _, m := range row.FindAllStringSubmatch(readPage(t, "docs/checklist.md").prose, -1) {
		ticked, kopf, here := m[1] == "x", m[2], m[3]
		switch {
		case !link.MatchString(here):
			t.Errorf("%s has no link", kopf)
		case !ticked && !strings.HasPrefix(here, "none: "):
			t.Errorf("%s is not ticked, and there is no reason", kopf)
		case ticked && strings.HasPrefix(here, "none"):
			t.Errorf("%s is ticked, but there is none", kopf)
		}
		for _, name := range span.FindAllString(kopf, -1) {
			told[strings.Trim(name, "`")] = true
		}
	}
	for name := range strings.FieldsSeq(string(raw)) {
		if !told[name] {
			t.Errorf("%s is missing", name)
		}
	}
}
