package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
)

// hoistLimit limits the passes over a file. Each pass resolves one level of types with type
// arguments.
const hoistLimit = 20

// hoistFiles parses the files of a package, with their anonymous structs and their types with
// type arguments moved to named types, because controller-tools supports only these. It edits
// the text and not the syntax tree, so comments and markers stay at their fields.
func hoistFiles(paths []string, into *token.FileSet) (all []*ast.File, err error) {
	texts := map[string][]byte{}
	for _, path := range paths {
		if texts[path], err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	generics, err := genericTypes(texts)
	if err != nil {
		return nil, err
	}
	instances, names := map[string]bool{}, map[string]int{}
	for _, path := range paths {
		edited := texts[path]
		for pass := 0; ; pass++ {
			before := edited
			h := hoister{text: before, generics: generics, instances: instances, count: names}
			if edited, err = h.hoist(path); err != nil {
				return nil, err
			}
			if bytes.Equal(before, edited) {
				break
			}
			if pass == hoistLimit {
				return nil, fmt.Errorf("%s: types with type arguments are nested too deeply", path)
			}
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
func (h *hoister) hoist(path string) (edited []byte, err error) {
	h.files = token.NewFileSet()
	h.file, err = parser.ParseFile(h.files, path, h.text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", path, err)
	}
	for _, d := range h.file.Decls {
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
		return h.text, nil
	}
	// More imports are in the line of the package clause: all lines keep their numbers.
	clause := h.offset(h.file.Name.End())
	return []byte(h.slice(0, clause) + strings.Join(h.more, "") + h.slice(clause, len(h.text)) + h.types.String()), nil
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

	file      *ast.File
	generics  map[string]*generic // of the package
	instances map[string]bool     // types that the package has by now; shared by its files
	more      []string            // imports
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
	case *ast.IndexExpr:
		h.instantiate(t, t.X, []ast.Expr{t.Index})
	case *ast.IndexListExpr:
		h.instantiate(t, t.X, t.Indices)
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
