package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
)

// hoistFiles parses the files, with their anonymous structs moved to named types:
// controller-tools does not support anonymous ones. Comments and markers stay at their
// fields, because the text is edited.
func hoistFiles(paths []string, into *token.FileSet) (all []*ast.File, err error) {
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		edited, err := hoist(path, text)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(into, path, edited, parser.ParseComments|parser.AllErrors)
		if err != nil {
			return nil, fmt.Errorf("parse %s: %w", path, err)
		}
		all = append(all, file)
	}
	return all, nil
}

// hoist moves the anonymous structs in the types of a file to named types at its end. Types
// with type parameters stay as they are, because their structs may depend on a parameter.
func hoist(path string, text []byte) ([]byte, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", path, err)
	}
	h := hoister{text: text, files: files}
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.TYPE {
			continue
		}
		for _, s := range g.Specs {
			spec := s.(*ast.TypeSpec)
			if spec.TypeParams == nil {
				h.visit(spec.Type, spec.Name.Name)
			}
		}
	}
	if len(h.edits) == 0 {
		return text, nil
	}
	return append([]byte(h.slice(0, len(text))), h.types.String()...), nil
}

// edit replaces a part of the text by the name of a type.
type edit struct {
	from, to int
	name     string
}

type hoister struct {
	text  []byte
	files *token.FileSet
	edits []edit
	types strings.Builder
	count map[string]int
}

// visit hoists the anonymous structs in the fields of a type. The type itself has a name.
func (h *hoister) visit(e ast.Expr, name string) {
	s, ok := e.(*ast.StructType)
	if !ok {
		h.replace(e, name)
		return
	}
	for _, f := range s.Fields.List {
		field := "Embedded"
		if len(f.Names) > 0 {
			field = f.Names[0].Name
		}
		h.replace(f.Type, name+field)
	}
}

// replace replaces the anonymous structs in the type of a field, at any depth of pointers,
// lists and maps.
func (h *hoister) replace(e ast.Expr, name string) {
	switch t := e.(type) {
	case *ast.StarExpr:
		h.replace(t.X, name)
	case *ast.ParenExpr:
		h.replace(t.X, name)
	case *ast.ArrayType:
		h.replace(t.Elt, name)
	case *ast.MapType:
		h.replace(t.Value, name)
	case *ast.StructType:
		name = h.unique(name)
		before := len(h.edits)
		h.visit(t, name)
		from, to := h.offset(t.Pos()), h.offset(t.End())
		fmt.Fprintf(&h.types, "\n\ntype %s %s\n", name, h.slice(from, to))
		h.edits = append(h.edits[:before], edit{from, to, name})
	}
}

func (h *hoister) unique(name string) string {
	if h.count == nil {
		h.count = map[string]int{}
	}
	name = "gopf" + name
	h.count[name]++
	if n := h.count[name]; n > 1 {
		return fmt.Sprintf("%s%d", name, n)
	}
	return name
}

func (h *hoister) offset(p token.Pos) int { return h.files.Position(p).Offset }

// slice returns a part of the text with the edits inside it.
func (h *hoister) slice(from, to int) string {
	slices.SortFunc(h.edits, func(a, b edit) int { return a.from - b.from })
	var b strings.Builder
	for _, e := range h.edits {
		if e.from < from || e.to > to {
			continue
		}
		b.Write(h.text[from:e.from])
		b.WriteString(e.name)
		from = e.to
	}
	b.Write(h.text[from:to])
	return b.String()
}
