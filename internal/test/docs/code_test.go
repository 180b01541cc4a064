package docs

import (
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ownTests are pages whose code is compiled and run by tests of their own.
var ownTests = []string{"docs/testing.md"}

func TestEveryBlockOfGoCompiles(t *testing.T) {
	load := newLoader(t)
	checked := 0
	for _, p := range pages(t) {
		if slices.Contains(ownTests, p.path) {
			continue
		}
		known := load.names(t, p)
		told := map[string]bool{} // what is wrong with a block is wrong with those after it, too
		for _, b := range p.blocks {
			switch b.language {
			case "go":
				code, err := load.parse(p.path, b)
				if err != nil {
					t.Errorf("this is neither a file, nor declarations, nor statements: %v", err)
					continue
				}
				for _, err := range load.check(code, known) {
					if !told[err.Error()] {
						t.Error(err)
					}
					told[err.Error()] = true
				}
				known.take(code)
				checked++
			case "go controller-runtime":
				if _, err := load.parse(p.path, b); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if checked < 5 {
		t.Errorf("only %d blocks of code are found", checked)
	}
}

func TestEveryBlockOfGoIsFormatted(t *testing.T) {
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if language, _, _ := strings.Cut(b.language, " "); language != "go" || p.path == "README.md" {
				continue
			}
			switch formatted, err := format.Source([]byte(b.text)); {
			case err != nil:
				t.Errorf("%s:%d: %v", p.path, b.line, err)
			case string(formatted) != b.text:
				t.Errorf("%s:%d: gofmt would write:\n%s", p.path, b.line, formatted)
			}
		}
	}
}

// code is a block of Go that was parsed.
type code struct {
	file     *ast.File
	declared []ast.Decl // for later blocks
	imports  map[string]string
}

// parse reads a block in whatever form it is.
func (l *loader) parse(path string, b block) (*code, error) {
	parse := func(before, after string) (*ast.File, error) {
		text := fmt.Sprintf("%s//line %s:%d\n%s%s", before, path, b.line, b.text, after)
		return parser.ParseFile(l.set, "", text, parser.SkipObjectResolution|parser.ParseComments)
	}
	if strings.HasPrefix(strings.TrimSpace(b.text), "package ") {
		file, err := parse("", "")
		if err != nil {
			return nil, err
		}
		return declarations(file), nil
	}
	file, err := parse("package p\n", "")
	if err == nil {
		return declarations(file), nil
	}
	file, second := parse("package p\nfunc _() error {\n", "\nreturn nil\n}\n")
	if second == nil {
		return statements(file), nil
	}
	return nil, further(err, second)
}

// further is the error of whichever attempt to parse came further.
func further(a, b error) error {
	line := func(err error) int {
		var list scanner.ErrorList
		if errors.As(err, &list) && len(list) > 0 {
			return list[0].Pos.Line
		}
		return 0
	}
	if line(a) > line(b) {
		return a
	}
	return b
}

func declarations(file *ast.File) *code {
	file.Name.Name = "p"
	c := &code{file: file, imports: importsOf(file)}
	for _, d := range file.Decls {
		if g, ok := d.(*ast.GenDecl); !ok || g.Tok != token.IMPORT {
			c.declared = append(c.declared, d)
		}
	}
	return c
}

// statements takes types out of the function, so that functions of other blocks
// may be about them, and uses all variables.
func statements(file *ast.File) *code {
	body := file.Decls[0].(*ast.FuncDecl).Body
	c := &code{file: file}
	var inside, uses []ast.Stmt
	defined := map[string]bool{}
	for _, s := range body.List {
		switch s := s.(type) {
		case *ast.DeclStmt:
			if g := s.Decl.(*ast.GenDecl); g.Tok == token.TYPE {
				c.declared = append(c.declared, g)
				continue
			}
		case *ast.AssignStmt:
			if s.Tok != token.DEFINE {
				break
			}
			var names []*ast.Ident
			fresh := true
			for _, l := range s.Lhs {
				name := l.(*ast.Ident)
				fresh = fresh && (name.Name == "_" || !defined[name.Name])
				if name.Name != "_" && !defined[name.Name] {
					defined[name.Name] = true
					uses = append(uses, &ast.AssignStmt{Lhs: []ast.Expr{ast.NewIdent("_")}, Tok: token.ASSIGN, Rhs: []ast.Expr{ast.NewIdent(name.Name)}})
				}
				names = append(names, name)
			}
			if fresh {
				c.declared = append(c.declared, &ast.GenDecl{Tok: token.VAR, Specs: []ast.Spec{&ast.ValueSpec{Names: names, Values: s.Rhs}}})
			}
		}
		inside = append(inside, s)
	}
	end := len(inside) - 1 // the return that was added
	body.List = slices.Concat(inside[:end], uses, inside[end:])
	for _, d := range c.declared {
		if g := d.(*ast.GenDecl); g.Tok == token.TYPE {
			file.Decls = append(file.Decls, g)
		}
	}
	return c
}

// importsOf is what a file imports, by name; nil if it has no imports of its own.
func importsOf(file *ast.File) map[string]string {
	var imports map[string]string
	for _, i := range file.Imports {
		path := strings.Trim(i.Path.Value, `"`)
		name := filepath.Base(path)
		if i.Name != nil {
			name = i.Name.Name
		}
		if imports == nil {
			imports = map[string]string{}
		}
		imports[name] = path
	}
	return imports
}

// names are those that blocks of a page know without declaring them.
func (l *loader) names(t *testing.T, p *page) *known {
	t.Helper()
	k := &known{decls: map[string]ast.Decl{}, imports: map[string]string{}}
	for _, path := range []string{"testdata/names.go", filepath.Join("testdata", p.name()+".go")} {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		file, err := parser.ParseFile(l.set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		k.take(declarations(file))
	}
	return k
}

// check type-checks a block together with what it knows. Imports alone are for
// the blocks after it.
func (l *loader) check(c *code, k *known) (problems []error) {
	if len(c.declared) == 0 && c.imports != nil {
		return nil
	}
	own := map[string]bool{}
	for _, d := range c.file.Decls {
		for _, name := range declaredNames(d) {
			own[name] = true
		}
	}
	context := &ast.File{Name: ast.NewIdent("p"), Decls: k.without(own)}
	for _, file := range []*ast.File{context, c.file} {
		if file != c.file || c.imports == nil {
			addImports(file, k.imports)
		}
	}
	config := types.Config{Importer: l, Error: func(err error) {
		var e types.Error
		if errors.As(err, &e) && strings.Contains(e.Msg, "imported and not used") && !e.Pos.IsValid() {
			return // by us
		}
		problems = append(problems, err)
	}}
	_, _ = config.Check("p", l.set, []*ast.File{context, c.file}, nil)
	return problems
}
