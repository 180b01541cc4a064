package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// generic is a type with type parameters.
type generic struct {
	spec    *ast.TypeSpec
	doc     *ast.CommentGroup // may be nil
	text    []byte            // of its file
	files   *token.FileSet
	imports []*ast.ImportSpec // of its file
}

// genericTypes returns the types with type parameters of a package, by name.
func genericTypes(texts map[string][]byte) (map[string]*generic, error) {
	all := map[string]*generic{}
	for path, text := range texts {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parse %s: %w", path, err)
		}
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, s := range g.Specs {
				if spec := s.(*ast.TypeSpec); spec.TypeParams != nil {
					doc := spec.Doc
					if doc == nil && len(g.Specs) == 1 {
						doc = g.Doc
					}
					all[spec.Name.Name] = &generic{spec, doc, text, files, file.Imports}
				}
			}
		}
	}
	return all, nil
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9]+`)

// instantiate replaces a type with type arguments by a named type in which the arguments
// stand for the parameters: controller-tools does not support type parameters. Types with
// parameters of other packages stay as they are; controller-tools reports them as errors.
func (h *hoister) instantiate(e, of ast.Expr, args []ast.Expr) {
	ident, ok := of.(*ast.Ident)
	if !ok || h.generics[ident.Name] == nil {
		return
	}
	g := h.generics[ident.Name]
	values := map[string]string{}
	name := "gopf" + ident.Name
	for _, field := range g.spec.TypeParams.List {
		for _, param := range field.Names {
			if len(values) == len(args) {
				return // the compiler reports this
			}
			value := string(h.text[h.offset(args[len(values)].Pos()):h.offset(args[len(values)].End())])
			name += "_" + strings.Trim(notInNames.ReplaceAllString(value, "_"), "_")
			values[param.Name] = value
		}
	}
	h.edits = append(h.edits, edit{h.offset(e.Pos()), h.offset(e.End()), name})
	if h.instances[name] {
		return
	}
	h.instances[name] = true
	body, packages := g.with(values)
	for _, i := range g.imports {
		path := strings.Trim(i.Path.Value, `"`)
		alias := path[strings.LastIndex(path, "/")+1:]
		if i.Name != nil {
			alias = i.Name.Name
		}
		if slices.Contains(packages, alias) && !h.imports(alias) {
			h.more = append(h.more, fmt.Sprintf("; import %s %s", alias, i.Path.Value))
		}
	}
	doc := ""
	if g.doc != nil {
		doc = string(g.text[g.offset(g.doc.Pos()):g.offset(g.doc.End())]) + "\n"
	}
	fmt.Fprintf(&h.types, "\n\n%stype %s %s\n", doc, name, body)
}

func (g *generic) offset(p token.Pos) int { return g.files.Position(p).Offset }

// with returns the text of the type with values for its parameters, and the names of the
// packages in it.
func (g *generic) with(values map[string]string) (text string, packages []string) {
	var edits []edit
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field: // its names are no types
			ast.Inspect(n.Type, visit)
			return false
		case *ast.SelectorExpr:
			if p, ok := n.X.(*ast.Ident); ok {
				packages = append(packages, p.Name)
			}
			return false
		case *ast.Ident:
			if value, ok := values[n.Name]; ok {
				edits = append(edits, edit{g.offset(n.Pos()), g.offset(n.End()), value})
			}
		}
		return true
	}
	ast.Inspect(g.spec.Type, visit)
	h := hoister{text: g.text, edits: edits}
	return h.slice(g.offset(g.spec.Type.Pos()), g.offset(g.spec.Type.End())), packages
}

// imports reports whether the file, or an import that is added to it, has the name.
func (h *hoister) imports(alias string) bool {
	for _, i := range h.file.Imports {
		path := strings.Trim(i.Path.Value, `"`)
		if i.Name != nil && i.Name.Name == alias || i.Name == nil && path[strings.LastIndex(path, "/")+1:] == alias {
			return true
		}
	}
	return slices.ContainsFunc(h.more, func(m string) bool { return strings.HasPrefix(m, "; import "+alias+" ") })
}
