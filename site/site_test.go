package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// builtSite builds the site once for all tests. GOPF_HUGO names an executable of Hugo; without
// it, the pinned one is built, which takes minutes for the first time.
func builtSite(t *testing.T) string {
	t.Helper()
	out := t.TempDir()
	if err := build(t.Context(), options{root: "..", out: out, version: "dev", repository: "https://example.com/gopf", hugo: os.Getenv("GOPF_HUGO")}); err != nil {
		t.Fatal(err)
	}
	return out
}

// page is a page as browsers see it.
type page struct {
	ids   map[string]bool
	links []string // of anchors
	loads []string // of elements that browsers request by themselves
	next  string
	prev  string
	edit  bool
}

func TestSite(t *testing.T) {
	out := builtSite(t)
	folder := filepath.Join(out, "dev")
	pages := readPages(t, folder)
	t.Run("every link leads somewhere", func(t *testing.T) { checkLinks(t, folder, pages) })
	t.Run("nothing is requested from other servers", func(t *testing.T) { checkLoads(t, folder, pages) })
	t.Run("previous and next lead through all pages", func(t *testing.T) {
		at, seen := "index.html", 1
		for ; pages[at].next != ""; seen++ {
			if back := pages[pages[at].next].prev; back != at {
				t.Fatalf("back from %s is %s instead of %s", pages[at].next, back, at)
			}
			at = pages[at].next
		}
		if seen != len(pages) {
			t.Errorf("%d of %d pages are in the chain", seen, len(pages))
		}
	})
	t.Run("pages can be edited and read as plain text", func(t *testing.T) {
		for name, p := range pages {
			generated := strings.HasPrefix(name, "api-") || name == "benchmarks.html"
			if p.edit == generated {
				t.Errorf("%s: edit link: %v", name, p.edit)
			}
			if _, err := os.Stat(filepath.Join(folder, strings.TrimSuffix(name, ".html")+".md")); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("drawings are inside of pages", func(t *testing.T) {
		for name, drawing := range map[string]string{"continuity.html": "life of one object", "peering.html": "Hand-over of a lease", "benchmarks.html": "shorter bars"} {
			text, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil {
				t.Fatal(err)
			}
			if !regexp.MustCompile(`(?s)<svg[^>]*class="?pic.*` + drawing).Match(text) {
				t.Errorf("%s does not contain the drawing %q", name, drawing)
			}
		}
	})
}

func readPages(t *testing.T, folder string) map[string]*page {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.html"))
	if err != nil || len(files) < 60 {
		t.Fatalf("found only %d pages: %v", len(files), err)
	}
	pages := map[string]*page{}
	for _, file := range files {
		text, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		root, err := html.Parse(text)
		_ = text.Close()
		if err != nil {
			t.Fatal(err)
		}
		p := &page{ids: map[string]bool{}}
		p.read(root)
		pages[filepath.Base(file)] = p
	}
	return pages
}

func (p *page) read(n *html.Node) {
	attributes := map[string]string{}
	for _, a := range n.Attr {
		attributes[a.Key] = a.Val
	}
	if id := attributes["id"]; id != "" {
		p.ids[id] = true
	}
	switch {
	case n.Type != html.ElementNode:
	case n.Data == "a":
		p.links = append(p.links, attributes["href"])
		switch attributes["rel"] {
		case "next":
			p.next = attributes["href"]
		case "prev":
			p.prev = attributes["href"]
		}
		p.edit = p.edit || strings.Contains(attributes["href"], "/edit/main/")
	default:
		for _, key := range []string{"src", "srcset", "href", "data", "poster"} {
			if attributes[key] != "" {
				p.loads = append(p.loads, attributes[key])
			}
		}
	}
	for c := range n.ChildNodes() {
		p.read(c)
	}
}

func checkLinks(t *testing.T, folder string, pages map[string]*page) {
	for name, p := range pages {
		for _, link := range p.links {
			if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
				continue
			}
			file, anchor, _ := strings.Cut(link, "#")
			target := p
			if file != "" {
				if _, err := os.Stat(filepath.Join(folder, file)); err != nil {
					t.Errorf("%s: %s leads nowhere", name, link)
					continue
				}
				target = pages[file]
			}
			if anchor != "" && (target == nil || !target.ids[anchor]) {
				t.Errorf("%s: %s has no such heading", name, link)
			}
		}
	}
}

func checkLoads(t *testing.T, folder string, pages map[string]*page) {
	for name, p := range pages {
		for _, load := range p.loads {
			if load == "../versions.js" {
				continue
			}
			if _, err := os.Stat(filepath.Join(folder, load)); err != nil {
				t.Errorf("%s loads %s, which is not part of the site", name, load)
			}
		}
	}
	for _, pattern := range []string{"*.css", "*.js"} {
		files, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if filepath.Base(file) != "search-index.js" && regexp.MustCompile(`https?:|@import|url\(|fetch\(|XMLHttpRequest`).Match(text) {
				t.Errorf("%s requests something", file)
			}
		}
	}
}

func TestVersionsAreListedNewestFirst(t *testing.T) {
	out := t.TempDir()
	for _, version := range []string{"v0.2.0", "dev", "v0.10.0", "v0.9.1"} {
		for _, name := range []string{"llms.txt", "llms-full.txt"} {
			if err := os.MkdirAll(filepath.Join(out, version), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(out, version, name), fmt.Appendf(nil, "[%s](x.md)", version), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := writeVersions(out); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"versions.js": `["dev", "v0.10.0", "v0.9.1", "v0.2.0"]`,
		"index.html":  "url=v0.10.0/index.html",
		"llms.txt":    "[v0.10.0](v0.10.0/x.md)",
	} {
		if text, err := os.ReadFile(filepath.Join(out, name)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s has %q instead of %q, %v", name, text, want, err)
		}
	}
	if !slices.IsSortedFunc([]string{"dev", "v1.0.0", "v0.10.0", "v0.9.0"}, newestFirst) {
		t.Error("versions are compared as texts")
	}
}
