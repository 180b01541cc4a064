package docs

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestTheTutorialCompilesChapterByChapter does what a reader of docs/tutorial.md does.
// After every chapter the project compiles, with its tests. At the end its tests pass,
// and it is examples/tutorial-evc.
//
// A block of Go that begins with "package" is the file that the text before it names
// last, and so is a block of YAML. Other Go goes into operator.go: imports and
// declarations replace those of the same names. Statements must be in the file
// already. The command "make manifests" is run. "Remove `FILE`" in the text removes it, and "Remove the function `NAME`" removes
// a function of operator.go.
func TestTheTutorialCompilesChapterByChapter(t *testing.T) {
	chapters := strings.Split(readPage(t, "docs/tutorial.md").text, "\n## ")[1:]
	if len(chapters) < 8 {
		t.Fatalf("the tutorial has only %d chapters", len(chapters))
	}
	r := begin(t, chapters[0])
	gopf := buildTool(t)
	for _, chapter := range chapters[1:] {
		title, _, _ := strings.Cut(chapter, "\n")
		r.follow(t, title, chapter, gopf)
		r.run(t, title, "go", "vet", "./...")
	}
	r.run(t, "the end", "go", "test", "-v", "-run", "TestThePVCFollowsTheSize", ".")
	r.compare(t, filepath.Join(root, "examples/tutorial-evc"))
}

// reader is the folder of a reader's project.
type reader string

// begin makes the project by the command that the first chapter prints.
func begin(t *testing.T, chapter string) reader {
	t.Helper()
	folder := t.TempDir()
	for _, b := range blocksOf(chapter) {
		line, _, _ := strings.Cut(b.text, "\n")
		if command, found := strings.CutPrefix(line, "gopf "); found {
			line = "go run ./cmd/gopf " + command // no installed command
		}
		if words := strings.Fields(line); len(words) > 4 && words[0] == "go" && words[3] == "new" {
			r := reader(filepath.Join(folder, filepath.Base(words[4])))
			words[4] = string(r) // instead of the folder next to the checkout
			cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
			cmd.Dir = root
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", line, err, out)
			}
			r.run(t, "the new project", "go", "vet", "./...")
			return r
		}
	}
	t.Fatal("the first chapter does not make a project")
	return ""
}

func (r reader) run(t *testing.T, when string, command ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir = string(r)
	out, err := cmd.CombinedOutput()
	if err != nil || command[1] == "test" && !bytes.Contains(out, []byte("--- PASS")) {
		t.Fatalf("%s: %s: %v\n%s", when, strings.Join(command, " "), err, out)
	}
}

var (
	namedFile   = regexp.MustCompile("`([\\w./-]+\\.(?:go|yaml))`")
	removedFile = regexp.MustCompile("Remove `([\\w./-]+)`")
	removedFunc = regexp.MustCompile("Remove the function `(\\w+)`")
)

// follow applies what a chapter says, from top to bottom.
func (r reader) follow(t *testing.T, title, chapter, gopf string) {
	t.Helper()
	rest := chapter
	for _, b := range blocksOf(chapter) {
		prose, after, _ := strings.Cut(rest, "```"+b.language+"\n")
		_, rest, _ = strings.Cut(after, "```")
		for _, m := range removedFile.FindAllStringSubmatch(prose, -1) {
			if err := os.Remove(r.file(m[1])); err != nil {
				t.Fatalf("%s: %v", title, err)
			}
		}
		for _, m := range removedFunc.FindAllStringSubmatch(prose, -1) {
			r.write(t, "operator.go", withoutFunction(t, title, r.read(t, "operator.go"), m[1]))
		}
		names := namedFile.FindAllStringSubmatch(prose, -1)
		switch whole := strings.HasPrefix(b.text, "package "); {
		case b.language == "sh" && strings.HasPrefix(b.text, "make manifests\n"):
			r.run(t, title, "make", "manifests", "GOPF="+gopf)
		case b.language != "go" && b.language != "yaml":
		case b.language == "go" && !whole:
			r.write(t, "operator.go", amended(t, title, r.read(t, "operator.go"), b.text))
		case len(names) == 0:
			t.Fatalf("%s: the text does not say which file this is:\n%s", title, b.text)
		default:
			r.write(t, names[len(names)-1][1], b.text)
		}
	}
}

func (r reader) file(name string) string { return filepath.Join(string(r), filepath.FromSlash(name)) }

func (r reader) read(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(r.file(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func (r reader) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(r.file(name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// amended is a file after a block was worked into it.
func amended(t *testing.T, title, file, block string) string {
	t.Helper()
	if _, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+block, 0); err != nil { // statements
		if !strings.Contains(file, block) {
			t.Fatalf("%s: operator.go does not have this:\n%s", title, block)
		}
		return file
	}
	parts, order := declarationsOf(t, file)
	for name, text := range first(declarationsOf(t, "package main\n\n"+block)) {
		if _, known := parts[name]; !known {
			order = append(order, name)
		}
		parts[name] = text
	}
	text := "package main\n"
	for _, name := range order {
		text += "\n" + parts[name] + "\n"
	}
	formatted, err := format.Source([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", title, err)
	}
	return string(formatted)
}

// withoutFunction is a file without one of its functions.
func withoutFunction(t *testing.T, title, file, name string) string {
	t.Helper()
	text := first(declarationsOf(t, file))[name]
	if text == "" {
		t.Fatalf("%s: operator.go does not have the function %s", title, name)
	}
	return strings.Replace(file, text, "", 1)
}

func first[A, B any](a A, _ B) A { return a }

// declarationsOf has the declarations of a file with their comments, by their names. All
// imports are one, "import".
func declarationsOf(t *testing.T, text string) (parts map[string]string, order []string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	parts = map[string]string{}
	for _, d := range file.Decls {
		name, from := "import", d.Pos()
		if names := declaredNames(d); len(names) > 0 {
			name = strings.Join(names, ",")
		}
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Doc != nil {
				from = d.Doc.Pos()
			}
		case *ast.GenDecl:
			if d.Doc != nil {
				from = d.Doc.Pos()
			}
		}
		parts[name] = text[set.Position(from).Offset:set.Position(d.End()).Offset]
		order = append(order, name)
	}
	return parts, order
}

// compare compares the project with the example.
func (r reader) compare(t *testing.T, example string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(example), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || name == "README.md" || name == "main.go" || name == "gopf.yaml" {
			return err
		}
		raw, err := os.ReadFile(filepath.Join(example, name))
		if err != nil {
			return err
		}
		theirs := r.read(t, name)
		if filepath.Ext(name) == ".go" {
			want, got := first(declarationsOf(t, string(raw))), first(declarationsOf(t, theirs))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s of the example and of the tutorial differ:\n%s", name, diff)
			}
			return nil
		}
		if diff := cmp.Diff(documentsOf(t, raw), documentsOf(t, []byte(theirs))); diff != "" {
			t.Errorf("%s of the example and of the tutorial differ:\n%s", name, diff)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// documentsOf decodes the documents of a manifest.
func documentsOf(t *testing.T, raw []byte) []any {
	t.Helper()
	var all []any
	for part := range strings.SplitSeq(string(raw), "\n---\n") {
		var decoded any
		if err := yaml.Unmarshal([]byte(part), &decoded); err != nil {
			t.Fatal(err)
		}
		all = append(all, decoded)
	}
	return all
}
