package docs

import (
	"go/types"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"gopf.dev/gopf"
)

var (
	span = regexp.MustCompile("`[^`\n]+`")
	ours = regexp.MustCompile(`\b(gopf|cli|client|diff|hierarchy|kind|logs|storage|storagetest|webhook)\.([A-Z]\w*)(?:\.([A-Z]\w*))?`)
	// formerName is the first column of a table.
	formerName = regexp.MustCompile(`(?m)^\|[^|]*\|`)
	settings   = regexp.MustCompile(`\b(?:Settings\.)?([A-Z]\w*)\.([A-Z]\w*)\b`)
)

// TestNamesInTheTextExist looks up what the text calls by name: "gopf.MaxAttempts",
// "gopf.Login.Expires", "Settings.Queueing.ExitTimeout", "Peering.Name".
func TestNamesInTheTextExist(t *testing.T) {
	load := newLoader(t)
	sections := reflect.TypeFor[gopf.Settings]()
	looked := 0
	for _, p := range pages(t) {
		prose := p.prose
		if p.path == "docs/renamed.md" {
			prose = formerName.ReplaceAllString(prose, "|")
		}
		for _, s := range span.FindAllString(prose, -1) {
			for _, m := range ours.FindAllStringSubmatch(s, -1) {
				looked++
				if !load.has(t, m[1], m[2], m[3]) {
					t.Errorf("%s: there is no %s", p.path, m[0])
				}
			}
			for _, m := range settings.FindAllStringSubmatch(s, -1) {
				if m[1] == "Settings" { // a whole section
					if _, found := sections.FieldByName(m[2]); !found {
						t.Errorf("%s: there is no %s", p.path, m[0])
					}
					continue
				}
				section, found := sections.FieldByName(m[1])
				if strings.HasPrefix(m[0], "Settings.") && !found {
					t.Errorf("%s: there is no %s", p.path, m[0])
				}
				if !found || strings.Contains(s, m[1]+"."+m[2]+"(") {
					continue
				}
				looked++
				if _, found := section.Type.FieldByName(m[2]); !found {
					t.Errorf("%s: there is no setting %s", p.path, m[0])
				}
			}
		}
	}
	if looked < 100 {
		t.Errorf("only %d names are found", looked)
	}
}

// has tells whether a package has the name, and what is called so the member.
func (l *loader) has(t *testing.T, pkg, name, member string) bool {
	t.Helper()
	p, err := l.Import(usual[pkg])
	if err != nil {
		t.Fatal(err)
	}
	found := p.Scope().Lookup(name)
	if found == nil || member == "" {
		return found != nil
	}
	m, _, _ := types.LookupFieldOrMethod(found.Type(), true, p, member)
	return m != nil
}
