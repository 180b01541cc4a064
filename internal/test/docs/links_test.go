package docs

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	left    = regexp.MustCompile(`[^\p{L}\p{N} _-]`) // out of anchors
)

func TestEveryLinkLeadsSomewhere(t *testing.T) {
	all := pages(t)
	anchors := map[string][]string{}
	for _, p := range all {
		anchors[p.path] = anchorsOf(p)
	}
	for _, p := range all {
		for _, m := range link.FindAllStringSubmatch(span.ReplaceAllString(p.prose, "code"), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := p.path
			if file != "" {
				target = path.Join(path.Dir(p.path), file)
			}
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(target))); err != nil {
				t.Errorf("%s: %s leads nowhere", p.path, m[1])
				continue
			}
			if names, ours := anchors[target]; anchor != "" && ours && !slices.Contains(names, anchor) {
				t.Errorf("%s: %s has no heading for %s; there are %v", p.path, target, m[1], names)
			}
		}
	}
}

// anchorsOf are the names of the headings of a page, as GitHub makes them.
func anchorsOf(p *page) []string {
	var names []string
	for _, m := range heading.FindAllStringSubmatch(p.prose, -1) {
		name := strings.ToLower(strings.TrimSpace(m[1]))
		name = left.ReplaceAllString(name, "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}

func TestTheTableOfContentsHasEveryPage(t *testing.T) {
	contents := readPage(t, "docs/README.md").prose
	for _, p := range pages(t) {
		if path.Dir(p.path) == "docs" && p.name() != "README" && !strings.Contains(contents, "("+path.Base(p.path)+")") {
			t.Errorf("docs/README.md does not tell of %s", p.path)
		}
	}
}
