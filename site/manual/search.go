package manual

import (
	"regexp"
	"strings"
)

// Entry is a part of a page that the search can find: the text below one heading.
type Entry struct {
	Page    string `json:"p"` // the name of the page
	Title   string `json:"t"` // of the page
	Heading string `json:"h"` // empty for the text before the first heading
	Anchor  string `json:"a"`
	Text    string `json:"x"`
	About   string `json:"d,omitempty"` // the description of the page, for its first entry
}

var (
	markup       = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	notInAnchors = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	headingLine  = regexp.MustCompile(`^(#{2,4}) (.+)$`)
	tableRule    = regexp.MustCompile(`^\|[-|: ]+\|$`)
)

// plain removes links, emphasis and table borders from a text.
func plain(text string) string {
	text = markup.ReplaceAllString(text, "$1")
	return strings.Join(strings.Fields(strings.NewReplacer("`", "", "**", "", "|", " ").Replace(text)), " ")
}

// Index returns the entries of all pages, in their order.
func (s *Site) Index() (all []Entry) {
	for _, p := range s.Pages() {
		if p.Name == "changelog" || p.Name == "manual" {
			continue // they mention everything
		}
		entry := Entry{Page: p.Name, Title: p.Title, About: plain(p.Description)}
		var text []string
		flush := func() {
			entry.Text = strings.Join(text, " ")
			if entry.Text != "" || entry.Heading != "" || entry.About != "" {
				all = append(all, entry)
			}
			text, entry.About = nil, ""
		}
		seen := map[string]int{}
		fenced := false
		for line := range strings.Lines(p.body()) {
			line = strings.TrimRight(line, "\n")
			if fence.MatchString(line) {
				fenced = !fenced
				continue
			}
			if m := headingLine.FindStringSubmatch(line); m != nil && !fenced {
				flush()
				entry.Heading, entry.Anchor = plain(m[2]), anchorOf(m[2], seen)
				continue
			}
			if !tableRule.MatchString(line) && !strings.HasPrefix(line, "Tests: ") {
				text = append(text, plain(line))
			}
		}
		flush()
	}
	return all
}

// anchorOf returns the id of a heading, as Hugo and GitHub make it.
func anchorOf(heading string, seen map[string]int) string {
	heading = markup.ReplaceAllString(heading, "$1")
	id := strings.ToLower(strings.TrimSpace(heading))
	id = strings.ReplaceAll(notInAnchors.ReplaceAllString(id, ""), " ", "-")
	seen[id]++
	return id
}
