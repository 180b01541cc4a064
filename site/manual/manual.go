// Package manual reads the pages of the manual, their order, and the references that are
// generated from code and measurements. It writes the input of Hugo, and the files for
// programs: plain Markdown, llms.txt and the index of the search.
package manual

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Page is a page of the site.
type Page struct {
	Name        string // of the files: NAME.html and NAME.md
	Source      string // the path in the repository; empty for generated pages
	Title       string
	Label       string // in the navigation
	Description string
	Section     string
	Markdown    string // with the title, and with links as in the repository
}

// Section is a group of pages in the navigation.
type Section struct {
	Title string
	Pages []*Page
}

// Site is the whole site, in the order of the navigation.
type Site struct {
	Repository string // the address of the public repository, without a slash at the end
	Version    string
	Sections   []Section
	root       string
}

// Pages returns all pages in their order.
func (s *Site) Pages() (all []*Page) {
	for _, section := range s.Sections {
		all = append(all, section.Pages...)
	}
	return all
}

var (
	sectionHeading = regexp.MustCompile(`^## (.+)$`)
	contentsRow    = regexp.MustCompile(`^\| \[([^\]]+)\]\(([^)]+)\.md\) \| (.+) \|$`)
	titleLine      = regexp.MustCompile(`(?m)\A# (.+)\n`)
)

// project are the pages outside of the folder docs.
var project = []Page{
	{Name: "architecture", Source: "ARCHITECTURE.md", Description: "how Gopf is built: data flow, layers, promises"},
	{Name: "contributing", Source: "CONTRIBUTING.md", Description: "how to change Gopf: tests, style, language"},
	{Name: "security", Source: "SECURITY.md", Description: "the threat model, its limits, and how to report a vulnerability"},
	{Name: "code-of-conduct", Source: "CODE_OF_CONDUCT.md", Description: "how we treat each other"},
	{Name: "changelog", Source: "CHANGELOG.md", Description: "changes of each version"},
}

// Read reads the repository in the folder root. The table of contents, docs/README.md, has
// the sections and the order of pages.
func Read(root, repository, version string) (*Site, error) {
	s := &Site{Repository: strings.TrimSuffix(repository, "/"), Version: version, root: root}
	home := &Page{Name: "index", Source: "README.md", Description: "Kubernetes operators in Go, without the boilerplate"}
	contents := &Page{Name: "manual", Source: "docs/README.md", Description: "the table of contents"}
	s.Sections = append(s.Sections, Section{Title: "Start", Pages: []*Page{home, contents}})
	raw, err := os.ReadFile(filepath.Join(root, contents.Source))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		if m := sectionHeading.FindStringSubmatch(line); m != nil {
			s.Sections = append(s.Sections, Section{Title: m[1]})
		}
		if m := contentsRow.FindStringSubmatch(line); m != nil {
			last := &s.Sections[len(s.Sections)-1]
			last.Pages = append(last.Pages, &Page{Name: m[2], Label: m[1], Source: "docs/" + m[2] + ".md", Description: m[3]})
		}
	}
	measured, err := s.measurements()
	if err != nil {
		return nil, err
	}
	reference, err := s.reference()
	if err != nil {
		return nil, err
	}
	s.Sections = append(s.Sections, Section{Title: "API reference", Pages: reference})
	last := Section{Title: "Project", Pages: []*Page{measured}}
	for _, p := range project {
		if _, err := os.Stat(filepath.Join(root, p.Source)); err == nil {
			last.Pages = append(last.Pages, &p)
		}
	}
	s.Sections = append(s.Sections, last)
	for _, section := range s.Sections {
		for _, p := range section.Pages {
			p.Section = section.Title
			if err := s.load(p); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// load reads the text of a page, unless it is generated, and its title.
func (s *Site) load(p *Page) error {
	if p.Source != "" && p.Markdown == "" {
		raw, err := os.ReadFile(filepath.Join(s.root, filepath.FromSlash(p.Source)))
		if err != nil {
			return err
		}
		p.Markdown = string(raw)
	}
	m := titleLine.FindStringSubmatch(p.Markdown)
	if m == nil {
		return fmt.Errorf("%s does not begin with a title", p.Name)
	}
	p.Title = strings.ReplaceAll(m[1], "`", "")
	p.Label = cmp.Or(p.Label, p.Title)
	return nil
}

// body returns the Markdown below the title.
func (p *Page) body() string { return titleLine.ReplaceAllString(p.Markdown, "") }

var (
	fence    = regexp.MustCompile("^\\s*```")
	codeSpan = regexp.MustCompile("`[^`\n]*`")
	linkTo   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

// eachProse calls edit for each line outside of fenced blocks, and replaces it.
func eachProse(markdown string, edit func(line string) string) string {
	var b strings.Builder
	fenced := false
	for line := range strings.Lines(markdown) {
		switch {
		case fence.MatchString(line):
			fenced = !fenced
		case !fenced:
			line = edit(line)
		}
		b.WriteString(line)
	}
	return b.String()
}

// relink rewrites the links of a page. Code spans stay as they are.
func relink(markdown string, to func(target string) string) string {
	return eachProse(markdown, func(line string) string {
		var b strings.Builder
		at := 0
		spans := codeSpan.FindAllStringIndex(line, -1)
		for _, m := range linkTo.FindAllStringSubmatchIndex(line, -1) {
			inSpan := slices.ContainsFunc(spans, func(s []int) bool { return s[0] <= m[0] && m[1] <= s[1] })
			if inSpan {
				continue
			}
			b.WriteString(line[at:m[2]] + to(line[m[2]:m[3]]))
			at = m[3]
		}
		return b.String() + line[at:]
	})
}

// resolve returns the target of a link for the site: a page with the given extension, a
// picture, or a file of the repository at its public address.
func (s *Site) resolve(from *Page, target, extension string) string {
	if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") || strings.HasPrefix(target, "#") {
		return target
	}
	file, anchor, found := strings.Cut(target, "#")
	if found {
		anchor = "#" + anchor
	}
	if from.Source == "" {
		return file + extension + anchor // generated pages name pages
	}
	file = path.Join(path.Dir(from.Source), file)
	for _, p := range s.Pages() {
		if p.Source == file {
			return p.Name + extension + anchor
		}
	}
	if file == "." {
		return s.Repository
	}
	if strings.HasPrefix(file, "docs/pictures/") {
		return strings.TrimPrefix(file, "docs/")
	}
	return s.Repository + "/blob/main/" + file + anchor
}
