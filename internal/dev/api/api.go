package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// private lists folders without public packages.
var private = []string{"internal", "cmd", "examples", "bench", "tools", "testdata", "bin", "docs", "hack"}

// exported returns the lines of all public packages below the folder.
func exported(root string) ([]string, error) {
	var lines []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != root && (strings.HasPrefix(d.Name(), ".") || slices.Contains(private, d.Name())) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("read the API: %w", err)
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		if file.Name.Name != "main" {
			p := packageAPI{prefix: "pkg " + filepath.ToSlash(filepath.Join("gopf", folder)) + ", ", set: set}
			p.file(file)
			lines = append(lines, p.lines...)
		}
		return nil
	})
	slices.Sort(lines)
	return lines, err
}

// packageAPI collects the lines of one package.
type packageAPI struct {
	prefix string
	set    *token.FileSet
	lines  []string
}

func (p *packageAPI) add(format string, args ...any) {
	p.lines = append(p.lines, p.prefix+fmt.Sprintf(format, args...))
}

// text returns the source text of a node in one line.
func (p *packageAPI) text(n any) string {
	var b bytes.Buffer
	if err := printer.Fprint(&b, p.set, n); err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func (p *packageAPI) file(file *ast.File) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			p.function(d)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				p.spec(d.Tok, spec)
			}
		}
	}
}

func (p *packageAPI) function(d *ast.FuncDecl) {
	if !d.Name.IsExported() || d.Recv != nil && !exportedType(d.Recv.List[0].Type) {
		return
	}
	plain := *d
	plain.Body, plain.Doc = nil, nil
	p.add("%s", p.text(&plain))
}

// exportedType reports whether the type of a receiver is exported.
func exportedType(t ast.Expr) bool {
	switch t := t.(type) {
	case *ast.StarExpr:
		return exportedType(t.X)
	case *ast.IndexExpr:
		return exportedType(t.X)
	case *ast.IndexListExpr:
		return exportedType(t.X)
	case *ast.Ident:
		return t.IsExported()
	}
	return false
}

func (p *packageAPI) spec(of token.Token, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if !name.IsExported() {
				continue
			}
			if s.Type != nil {
				p.add("%s %s %s", of, name.Name, p.text(s.Type))
			} else {
				p.add("%s %s", of, name.Name)
			}
		}
	case *ast.TypeSpec:
		if s.Name.IsExported() {
			p.typ(s)
		}
	}
}

// typ adds a type, and the exported fields or methods of a struct or an interface.
func (p *packageAPI) typ(s *ast.TypeSpec) {
	name := s.Name.Name
	if s.TypeParams != nil {
		var params []string
		for _, f := range s.TypeParams.List {
			for _, n := range f.Names {
				params = append(params, n.Name+" "+p.text(f.Type))
			}
		}
		name += "[" + strings.Join(params, ", ") + "]"
	}
	switch t := s.Type.(type) {
	case *ast.StructType:
		p.add("type %s struct", name)
		p.members("type "+s.Name.Name+" struct", t.Fields)
	case *ast.InterfaceType:
		p.add("type %s interface", name)
		p.members("type "+s.Name.Name+" interface", t.Methods)
	default:
		alias := ""
		if s.Assign.IsValid() {
			alias = "= "
		}
		p.add("type %s %s%s", name, alias, p.text(s.Type))
	}
}

func (p *packageAPI) members(of string, list *ast.FieldList) {
	for _, f := range list.List {
		kind := strings.TrimPrefix(p.text(f.Type), "func")
		if _, isFunc := f.Type.(*ast.FuncType); !isFunc {
			kind = " " + p.text(f.Type)
		}
		for _, name := range f.Names {
			if name.IsExported() {
				p.add("%s, %s%s", of, name.Name, kind)
			}
		}
		if len(f.Names) == 0 && exportedType(f.Type) {
			p.add("%s, embeds %s", of, p.text(f.Type))
		}
	}
}
