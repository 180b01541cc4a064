package docs

import (
	"go/ast"
	"go/token"
	"maps"
	"slices"
)

// known is what blocks of a page know of those before them.
type known struct {
	decls map[string]ast.Decl // by one of their names
	order []string

	imports map[string]string // of blocks that have some
}

// take adds the declarations of a block; they replace former ones of the same
// names.
func (k *known) take(c *code) {
	maps.Copy(k.imports, c.imports)
	for _, d := range split(c.declared) {
		names := declaredNames(d)
		if len(names) == 0 {
			continue
		}
		for _, n := range names {
			k.forget(n)
		}
		k.decls[names[0]] = d
		k.order = append(k.order, names[0])
	}
}

func (k *known) forget(name string) {
	for key, d := range k.decls {
		if slices.Contains(declaredNames(d), name) {
			delete(k.decls, key)
			k.order = slices.DeleteFunc(k.order, func(n string) bool { return n == key })
		}
	}
}

// without are the declarations that have nothing to do with the names.
func (k *known) without(own map[string]bool) []ast.Decl {
	var decls []ast.Decl
	for _, key := range k.order {
		d := k.decls[key]
		taken := slices.ContainsFunc(declaredNames(d), func(n string) bool { return own[n] })
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && own[receiver(f)] {
			taken = true // a method of a type that is another one now
		}
		if !taken {
			decls = append(decls, d)
		}
	}
	return decls
}

// split makes a declaration of each specification, but for constants, which
// depend on each other.
func split(decls []ast.Decl) []ast.Decl {
	var single []ast.Decl
	for _, d := range decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok == token.CONST {
			single = append(single, d)
			continue
		}
		for _, s := range g.Specs {
			single = append(single, &ast.GenDecl{Tok: g.Tok, Specs: []ast.Spec{s}})
		}
	}
	return single
}

// declaredNames are the names that a declaration brings, methods as "T.name".
func declaredNames(d ast.Decl) []string {
	var names []string
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil {
			return []string{receiver(d) + "." + d.Name.Name}
		}
		names = append(names, d.Name.Name)
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
			case *ast.ValueSpec:
				for _, n := range s.Names {
					names = append(names, n.Name)
				}
			}
		}
	}
	return slices.DeleteFunc(names, func(n string) bool { return n == "_" })
}

func receiver(f *ast.FuncDecl) string {
	t := f.Recv.List[0].Type
	for {
		switch of := t.(type) {
		case *ast.StarExpr:
			t = of.X
		case *ast.IndexExpr:
			t = of.X
		case *ast.Ident:
			return of.Name
		default:
			return ""
		}
	}
}
