package manual

import (
	"slices"
	"strings"
	"testing"
)

func TestTheSiteHasEveryPageOfTheManualAndEveryPublicPackage(t *testing.T) {
	names := map[string]bool{}
	for _, p := range readSite(t).Pages() {
		if names[p.Name] {
			t.Errorf("two pages are named %s", p.Name)
		}
		names[p.Name] = true
		if p.Title == "" || p.Description == "" || strings.Count(p.Markdown, "\n") < 5 {
			t.Errorf("the page %s has no title, no description or no text", p.Name)
		}
	}
	for _, name := range []string{"index", "manual", "tutorial", "why", "compatibility", "benchmarks", "api-gopf", "api-client-manifest", "api-gopftest", "changelog"} {
		if !names[name] {
			t.Errorf("there is no page %s", name)
		}
	}
}

func TestTheReferenceHasNamesWithTheirComments(t *testing.T) {
	pages := readSite(t).Pages()
	i := slices.IndexFunc(pages, func(p *Page) bool { return p.Name == "api-gopf" })
	for _, part := range []string{"## func Permanent\n", "## type Change\n", "### Resource.OnCreate\n", "func (r *Resource[T]) OnCreate(", "Default: "} {
		if !strings.Contains(pages[i].Markdown, part) {
			t.Errorf("the reference of the root package does not contain %q", part)
		}
	}
	if strings.Contains(pages[i].Markdown, "func newOperator") {
		t.Error("the reference contains names that are not exported")
	}
}

func TestLinksLeadToPagesOfTheSiteOrToTheRepository(t *testing.T) {
	s := readSite(t)
	docs, home := &Page{Source: "docs/errors.md"}, &Page{Source: "README.md"}
	for name, c := range map[string]struct {
		from         *Page
		target, want string
	}{
		"a page":                      {docs, "daemons.md#errors", "daemons.html#errors"},
		"the table of contents":       {docs, "README.md", "manual.html"},
		"from the top":                {home, "docs/tutorial.md", "tutorial.html"},
		"a page outside of the docs":  {docs, "../SECURITY.md#guarantees", "security.html#guarantees"},
		"a file of the repository":    {docs, "../examples/upgrade", "https://example.com/gopf/blob/main/examples/upgrade"},
		"a heading of the same page":  {docs, "#options", "#options"},
		"another site":                {docs, "https://kopf.dev", "https://kopf.dev"},
		"a picture":                   {docs, "pictures/life.svg", "pictures/life.svg"},
		"a picture, seen from README": {home, "docs/pictures/numbers.svg", "pictures/numbers.svg"},
	} {
		if got := s.resolve(c.from, c.target, ".html"); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func TestLinksInCodeStayAsTheyAre(t *testing.T) {
	text := "See [a](a.md), `[b](b.md)` and [c](c.md).\n```\n[d](d.md)\n```\n"
	want := "See [a](X), `[b](b.md)` and [c](X).\n```\n[d](d.md)\n```\n"
	if got := relink(text, func(string) string { return "X" }); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestProgramsCanReadEverything checks llms.txt and llms-full.txt.
func TestProgramsCanReadEverything(t *testing.T) {
	s := readSite(t)
	short, full := s.short(), s.full()
	for _, p := range s.Pages() {
		if !strings.Contains(short, "("+p.Name+".md)") {
			t.Errorf("llms.txt does not list %s", p.Name)
		}
		if p.Name != "changelog" && !strings.Contains(full, "<!-- "+p.Name+".md -->\n\n# ") {
			t.Errorf("llms-full.txt does not contain %s", p.Name)
		}
	}
	for name, text := range map[string]string{"llms.txt": short, "llms-full.txt": full} {
		if !strings.Contains(text, s.Repository+"\n") && !strings.Contains(text, "[the repository]("+s.Repository+")") {
			t.Errorf("%s does not name the repository", name)
		}
	}
	for _, step := range []string{"go install ./cmd/gopf", "gopf new", "gopf.Want", "Validate(", "gopftest.NewCluster"} {
		if !strings.Contains(full, step) {
			t.Errorf("llms-full.txt does not explain %s", step)
		}
	}
}
