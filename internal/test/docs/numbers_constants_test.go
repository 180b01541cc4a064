package docs

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// constants evaluates constants in source files, including unexported ones.
type constants struct{ standard types.Importer }

// Import implements [types.Importer] for the standard library. Constants need no other
// packages.
func (c constants) Import(path string) (*types.Package, error) {
	if strings.Contains(path, ".") {
		return nil, fmt.Errorf("%s is not needed", path)
	}
	return c.standard.Import(path)
}

// value returns the value of a constant. Constants of tests count only in folders that
// have nothing but tests.
func (c constants) value(t *testing.T, folder, name string) int64 {
	t.Helper()
	set := token.NewFileSet()
	paths, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	isTest := func(path string) bool { return strings.HasSuffix(path, "_test.go") }
	if code := slices.DeleteFunc(slices.Clone(paths), isTest); len(code) > 0 {
		paths = code
	}
	for _, path := range paths {
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if file.Decls = constantsOf(file, name); len(file.Decls) == 0 {
			continue
		}
		config := types.Config{Importer: c, Error: func(error) {}} // unresolved names of other packages
		pkg, _ := config.Check(folder, set, []*ast.File{file}, nil)
		if found, ok := pkg.Scope().Lookup(name).(*types.Const); ok {
			if n, exact := constant.Int64Val(constant.ToInt(found.Val())); exact {
				return n
			}
		}
	}
	t.Fatalf("%s has no constant %s", folder, name)
	return 0
}

// constantsOf returns the constants of a file and its import of package time. It returns
// nil if the constant is not among them.
func constantsOf(file *ast.File, name string) (kept []ast.Decl) {
	found := false
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST && g.Tok != token.IMPORT {
			continue
		}
		if g.Tok == token.IMPORT {
			g.Specs = onlyTime(g.Specs)
		}
		for _, n := range declaredNames(g) {
			found = found || n == name
		}
		kept = append(kept, g)
	}
	if !found {
		return nil
	}
	return kept
}

func onlyTime(specs []ast.Spec) (kept []ast.Spec) {
	for _, s := range specs {
		if s.(*ast.ImportSpec).Path.Value == `"time"` {
			kept = append(kept, s)
		}
	}
	return kept
}
