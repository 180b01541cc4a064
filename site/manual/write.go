package manual

import (
	"encoding/json"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"gopf.dev/gopf/site/picture"
)

// Write writes the input of Hugo into a folder: content, data, and static files.
func (s *Site) Write(folder string) error {
	files := map[string]string{}
	all := s.Pages()
	for i, p := range all {
		front := map[string]any{
			"title": p.Title, "description": plain(p.Description), "section": p.Section, "name": p.Name,
			"url": "/" + p.Name + ".html", "source": p.Source,
		}
		if p.Source != "" {
			front["edit"] = s.Repository + "/edit/main/" + p.Source
		}
		if i > 0 {
			front["before"] = map[string]string{"name": all[i-1].Name, "title": all[i-1].Label}
		}
		if i+1 < len(all) {
			front["after"] = map[string]string{"name": all[i+1].Name, "title": all[i+1].Label}
		}
		body, err := s.html(p)
		if err != nil {
			return err
		}
		name := p.Name
		if name == "index" {
			name = "_index"
		}
		files["content/"+name+".md"] = encode(front) + "\n" + body
		files["static/"+p.Name+".md"] = s.plainMarkdown(p)
	}
	files["data/nav.json"] = encode(s.navigation())
	files["data/site.json"] = encode(map[string]string{"version": s.Version, "repository": s.Repository})
	files["static/search-index.js"] = "var gopfIndex = " + encode(s.Index()) + ";\n"
	files["static/picture.css"] = picture.CSS()
	files["static/llms.txt"], files["static/llms-full.txt"] = s.short(), s.full()
	charts, err := os.ReadFile(filepath.Join(s.root, "bench/results/bench.svg"))
	if err != nil {
		return err
	}
	files["static/bench.svg"] = string(charts)
	for name, text := range files {
		file := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return os.CopyFS(filepath.Join(folder, "static/pictures"), os.DirFS(filepath.Join(s.root, "docs/pictures")))
}

// encode returns a value of this package as JSON; such values cannot fail.
func encode(v any) string {
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		panic(err)
	}
	return string(text)
}

// navigation returns the sections for the templates.
func (s *Site) navigation() []map[string]any {
	var nav []map[string]any
	for _, section := range s.Sections {
		var pages []map[string]string
		for _, p := range section.Pages {
			pages = append(pages, map[string]string{"name": p.Name, "title": p.Label})
		}
		nav = append(nav, map[string]any{"title": section.Title, "pages": pages})
	}
	return nav
}

var image = regexp.MustCompile(`(?m)^!\[([^\]]*)\]\((?:docs/)?pictures/([^)]+\.svg)\)$`)

// html returns the Markdown for Hugo: without the title, with links to pages of the site and
// with drawings inside of the page, where they follow its theme.
func (s *Site) html(p *Page) (string, error) {
	var failed error
	body := image.ReplaceAllStringFunc(p.body(), func(found string) string {
		m := image.FindStringSubmatch(found)
		svg, err := os.ReadFile(filepath.Join(s.root, "docs/pictures", m[2]))
		if err != nil {
			failed = fmt.Errorf("%s: %w", p.Name, err)
			return found
		}
		return "<figure class=\"picture\" aria-label=\"" + html.EscapeString(m[1]) + "\">\n" + strings.TrimSpace(string(svg)) + "\n</figure>"
	})
	body = relink(body, func(target string) string { return s.resolve(p, target, ".html") })
	return strings.ReplaceAll(strings.ReplaceAll(body, "{{<", "{{</*"), "{{%", "{{%/*"), failed
}

// plainMarkdown returns the page as a file next to the other plain pages.
func (s *Site) plainMarkdown(p *Page) string {
	return relink(p.Markdown, func(target string) string { return s.resolve(p, target, ".md") })
}

// short returns llms.txt: the list of all pages as plain Markdown.
func (s *Site) short() string {
	var b strings.Builder
	b.WriteString("# Gopf\n\n> Gopf is a framework for Kubernetes operators in Go: plain functions handle creations, updates, deletions and fields of objects,\n" +
		"> declared children are reconciled, and progress is stored on the objects. Module: gopf.dev/gopf. Each page below is plain Markdown;\n" +
		"> llms-full.txt has all of them in one file. Repository: " + s.Repository + "\n\n" +
		"From an empty folder to a tested operator: [Quickstart](quickstart.md) has a child, a validation and their tests as whole files.\n" +
		"Before the first release, install the command gopf from a clone of the repository: go install ./cmd/gopf\n" +
		"Details: [installation](installation.md), [children](reconciliation.md), [validation](admission.md), [tests](testing.md).\n")
	for _, section := range s.Sections {
		fmt.Fprintf(&b, "\n## %s\n\n", section.Title)
		for _, p := range section.Pages {
			fmt.Fprintf(&b, "- [%s](%s.md): %s\n", p.Title, p.Name, plain(p.Description))
		}
	}
	return b.String()
}

// full returns llms-full.txt: all pages but the changelog, one after another.
func (s *Site) full() string {
	var b strings.Builder
	for _, p := range s.Pages() {
		if p.Name != "changelog" {
			fmt.Fprintf(&b, "<!-- %s.md -->\n\n%s\n\n", p.Name, strings.TrimSpace(s.plainMarkdown(p)))
		}
	}
	return b.String()
}
