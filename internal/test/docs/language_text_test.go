package docs

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// kindOfText says where a paragraph was found.
type kindOfText string

const (
	inPage    kindOfText = "page"
	inComment kindOfText = "comment"
	inMessage kindOfText = "message"
)

// paragraph is a block of prose: a paragraph of a page, a list item, a table
// row, a group of comments, or a string literal of more than one word.
type paragraph struct {
	file  string // from the root, with slashes
	kind  kindOfText
	first int      // the line number of lines[0]
	lines []string // without comment markers
}

func newParagraph(file string, kind kindOfText, first int, text string) paragraph {
	return paragraph{file, kind, first, strings.Split(text, "\n")}
}

// text returns the lines as one.
func (p paragraph) text() string { return strings.Join(p.lines, " ") }

// lineAt returns the line number of an offset in the text.
func (p paragraph) lineAt(offset int) int {
	for i, l := range p.lines {
		if offset -= len(l) + 1; offset < 0 {
			return p.first + i
		}
	}
	return p.first
}

// paragraphs returns the prose of the repository: Markdown pages, and comments
// and string literals of Go files that are not tests. Templates of new projects
// count as the files they become.
func paragraphs(t *testing.T) (all []paragraph) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); name == "testdata" || name == "bin" || strings.HasPrefix(name, ".") && path != root {
				return fs.SkipDir
			}
			return nil
		}
		of := proseIn(strings.TrimSuffix(d.Name(), ".tmpl"))
		if of == nil {
			return nil
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		all = append(all, of(filepath.ToSlash(rel), string(raw))...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 1000 {
		t.Fatalf("only %d paragraphs were found", len(all))
	}
	return all
}

// proseIn returns the function that reads the prose of a file, nil for files
// without prose.
func proseIn(name string) func(file, text string) []paragraph {
	switch {
	case strings.HasSuffix(name, ".md"):
		return proseOfPage
	case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
		return proseOfCode
	}
	return nil
}

var (
	newBlock    = regexp.MustCompile(`^\s*([*+|#>-]|\d+\.)(\s|$)`)
	notProse    = regexp.MustCompile("`[^`]*`|\\]\\([^)]*\\)") // code and targets of links
	codeComment = regexp.MustCompile(`(?:^|\s)(?://|#) (.*)`)
)

// proseOfPage returns the paragraphs of a page, without code. Of fenced blocks,
// it returns the comments.
func proseOfPage(file, text string) (all []paragraph) {
	fenced, open := false, false
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "```"):
			fenced, open = !fenced, false
		case fenced:
			if m := codeComment.FindStringSubmatch(line); m != nil {
				all = append(all, newParagraph(file, inPage, number, m[1]))
			}
		case line == "":
			open = false
		default:
			prose := notProse.ReplaceAllString(line, "_")
			if open && !newBlock.MatchString(line) {
				last := &all[len(all)-1]
				last.lines = append(last.lines, prose)
				continue
			}
			all = append(all, newParagraph(file, inPage, number, prose))
			open = true
		}
	}
	return all
}

// proseOfCode returns the groups of comments of a Go file, and its string
// literals of more than one word.
func proseOfCode(file, text string) (all []paragraph) {
	set := token.NewFileSet()
	source := set.AddFile(file, -1, len(text))
	var s scanner.Scanner
	s.Init(source, []byte(text), nil, scanner.ScanComments)
	last := -1 // the index of the comment group that the next line may continue
	for {
		pos, tok, literal := s.Scan()
		line := source.Line(pos)
		switch {
		case tok == token.EOF:
			return all
		case tok == token.STRING:
			value, err := strconv.Unquote(literal)
			if literal[0] == '"' {
				value = strings.ReplaceAll(value, "\n", " ") // it is one line of the file
			}
			if err == nil && strings.Contains(value, " ") {
				all = append(all, newParagraph(file, inMessage, line, value))
			}
		case tok == token.COMMENT && !strings.HasPrefix(literal, "//go:"):
			prose := strings.TrimSpace(strings.Trim(literal, "/*"))
			if last >= 0 && all[last].first+len(all[last].lines) == line {
				all[last].lines = append(all[last].lines, prose)
				continue
			}
			last = len(all)
			all = append(all, newParagraph(file, inComment, line, prose))
		}
	}
}

func TestProseIsFoundWithItsLines(t *testing.T) {
	code := "package p\n\n// A is one.\n// It is two.\n\nvar a = \"one word\" // three\n\nvar b = \"word\"\n"
	want := []paragraph{
		{"a.go", inComment, 3, []string{"A is one.", "It is two."}},
		{"a.go", inMessage, 6, []string{"one word"}},
		{"a.go", inComment, 6, []string{"three"}},
	}
	if diff := cmp.Diff(want, proseOfCode("a.go", code), cmp.AllowUnexported(paragraph{})); diff != "" {
		t.Error(diff)
	}
	text := "# Title\n\nOne\ntwo `code`.\n* item\n  goes\n\n| a | b |\n\n```go\nf() // why\n```\n"
	want = []paragraph{
		{"a.md", inPage, 1, []string{"# Title"}},
		{"a.md", inPage, 3, []string{"One", "two _."}},
		{"a.md", inPage, 5, []string{"* item", "goes"}},
		{"a.md", inPage, 8, []string{"| a | b |"}},
		{"a.md", inPage, 11, []string{"why"}},
	}
	if diff := cmp.Diff(want, proseOfPage("a.md", text), cmp.AllowUnexported(paragraph{})); diff != "" {
		t.Error(diff)
	}
	p := want[1]
	if at := p.lineAt(strings.Index(p.text(), "two")); at != 4 {
		t.Errorf("the second line of the paragraph is %d", at)
	}
}
