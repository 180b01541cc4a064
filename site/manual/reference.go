package manual

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// packages are the public packages, with the folder of each.
var packages = []struct{ folder, about string }{
	{".", "declarations, handlers, settings"},
	{"cli", "the command line of operators"},
	{"client", "access to the cluster from handlers"},
	{"client/manifest", "objects from YAML templates"},
	{"diff", "differences of JSON values"},
	{"hierarchy", "children of objects"},
	{"kind", "selectors of resources"},
	{"logs", "log formats"},
	{"storage", "where state is kept"},
	{"storage/storagetest", "tests of storages"},
	{"webhook", "servers for admission reviews"},
	{"gopftest", "tests of operators"},
	{"webhook/ngrok", "a tunnel for admission reviews"},
}

const module = "gopf.dev/gopf"

// emptyLink is a link to a name of another package.
var emptyLink = regexp.MustCompile(`\[([^\]]+)\]\(\)`)

// reference returns a page for each public package.
func (s *Site) reference() ([]*Page, error) {
	var pages []*Page
	for _, p := range packages {
		page, err := s.packagePage(p.folder, p.about)
		if err != nil {
			return nil, fmt.Errorf("reference of %s: %w", p.folder, err)
		}
		pages = append(pages, page)
	}
	return pages, nil
}

func (s *Site) packagePage(folder, about string) (*Page, error) {
	set := token.NewFileSet()
	folderPath := filepath.Join(s.root, filepath.FromSlash(folder))
	files, err := parseFolder(set, folderPath)
	if err != nil {
		return nil, err
	}
	imported := path.Join(module, folder)
	pkg, err := doc.NewFromFiles(set, files, imported)
	if err != nil {
		return nil, err
	}
	name := "api-" + strings.ReplaceAll(folder, "/", "-")
	if folder == "." {
		name = "api-gopf"
	}
	w := &apiWriter{pkg: pkg, set: set, anchors: anchorsOf(pkg)}
	w.printf("# Package %s\n\n", strings.TrimPrefix(imported, path.Dir(module)+"/"))
	w.printf("```go\nimport %q\n```\n\n", imported)
	w.text(pkg.Doc)
	w.values(pkg.Consts, "## Constants\n\n")
	w.values(pkg.Vars, "## Variables\n\n")
	for _, f := range pkg.Funcs {
		w.function("##", "func "+f.Name, f)
	}
	for _, t := range pkg.Types {
		w.printf("## type %s\n\n", t.Name)
		w.code(t.Decl)
		w.text(t.Doc)
		w.values(t.Consts, "")
		w.values(t.Vars, "")
		for _, f := range t.Funcs {
			w.function("###", "func "+f.Name, f)
		}
		for _, m := range t.Methods {
			w.function("###", t.Name+"."+m.Name, m)
		}
	}
	return &Page{Name: name, Markdown: w.String(), Description: "the API of package " + imported + ": " + about}, nil
}

// parseFolder parses the files of a package, without tests.
func parseFolder(set *token.FileSet, folder string) (files []*ast.File, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !isSource(e) {
			continue
		}
		file, err := parser.ParseFile(set, filepath.Join(folder, e.Name()), nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

func isSource(e fs.DirEntry) bool {
	return !e.IsDir() && strings.HasSuffix(e.Name(), ".go") && !strings.HasSuffix(e.Name(), "_test.go")
}

// apiWriter writes the page of a package.
type apiWriter struct {
	bytes.Buffer
	pkg     *doc.Package
	set     *token.FileSet
	anchors map[string]string // by the names of the package; methods as T.M
}

// anchorsOf returns the links to the headings of a package.
func anchorsOf(pkg *doc.Package) map[string]string {
	anchors := map[string]string{}
	add := func(name, heading string) { anchors[name] = "#" + anchorOf(heading, map[string]int{}) }
	for _, f := range pkg.Funcs {
		add(f.Name, "func "+f.Name)
	}
	for _, t := range pkg.Types {
		add(t.Name, "type "+t.Name)
		for _, f := range t.Funcs {
			add(f.Name, "func "+f.Name)
		}
		for _, m := range t.Methods {
			add(t.Name+"."+m.Name, t.Name+"."+m.Name)
		}
	}
	return anchors
}

func (w *apiWriter) printf(format string, args ...any) { fmt.Fprintf(&w.Buffer, format, args...) }

// text writes a doc comment as Markdown. Links to other names of the package lead to their
// headings, and links to the standard library stay text: the site works offline.
func (w *apiWriter) text(text string) {
	p := w.pkg.Printer()
	p.HeadingLevel = 4
	p.HeadingID = func(*comment.Heading) string { return "" }
	p.DocLinkURL = func(l *comment.DocLink) string { return w.anchors[strings.TrimPrefix(l.Recv+"."+l.Name, ".")] }
	parsed := w.pkg.Parser().Parse(text)
	for line := range strings.Lines(string(p.Markdown(parsed))) {
		switch {
		case strings.HasPrefix(line, "\t"):
			w.printf("%s", "    "+strings.TrimPrefix(line, "\t"))
		default:
			w.printf("%s", emptyLink.ReplaceAllString(line, "`$1`"))
		}
	}
	w.printf("\n")
}

func (w *apiWriter) values(list []*doc.Value, heading string) {
	if len(list) == 0 {
		return
	}
	w.printf("%s", heading)
	for _, v := range list {
		w.code(v.Decl)
		w.text(v.Doc)
	}
}

func (w *apiWriter) function(level, title string, f *doc.Func) {
	w.printf("%s %s\n\n", level, title)
	w.code(f.Decl)
	w.text(f.Doc)
}

func (w *apiWriter) code(decl any) {
	w.printf("```go\n")
	_ = printer.Fprint(&w.Buffer, w.set, decl) // a buffer accepts all writes
	w.printf("\n```\n\n")
}
