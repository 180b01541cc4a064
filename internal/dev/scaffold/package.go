// Package scaffold adds kinds and handlers to the Go code of an operator. It writes one file
// with a function, one with its test, and inserts one line into the function that declares
// the handlers. It parses the code, changes no other line, and writes nothing if the result
// would not parse.
package scaffold

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	gopfPath = "gopf.dev/gopf"
	metaPath = "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Package is the parsed package of an operator.
type Package struct {
	dir     string
	name    string
	files   []*file
	names   map[string]token.Position // package-level names, those of tests as well
	consts  map[string]string
	kinds   []string
	handles []*handle
}

// file is a Go file without tests.
type file struct {
	name string
	src  []byte
	ast  *ast.File
	fset *token.FileSet
	gopf string // the name under which gopf is imported; empty means not at all
	meta string
}

// handle is a call of gopf.For for a kind of the package.
type handle struct {
	file     *file
	kind     string
	resource string // the Go expression of its name
	variable string // empty if it is not assigned to a variable
	operator string // the variable of the operator
	after    ast.Stmt
	ids      map[string]token.Position
}

// Load parses the package in a folder.
func Load(dir string) (*Package, error) {
	p := &Package{dir: dir, names: map[string]token.Position{}, consts: map[string]string{}}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.IsDir() || !strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		if err := p.read(e.Name()); err != nil {
			return nil, err
		}
	}
	if len(p.files) == 0 {
		return nil, fmt.Errorf("there are no Go files in %s; run the command in the folder of the operator, or create one with 'gopf new'", dir)
	}
	for _, f := range p.files {
		p.learn(f)
	}
	for _, f := range p.files {
		p.findHandles(f)
	}
	return p, nil
}

func (p *Package) read(name string) error {
	path := filepath.Join(p.dir, name)
	src, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	f := &file{name: name, src: src, fset: token.NewFileSet()}
	f.ast, err = parser.ParseFile(f.fset, path, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("correct this first: %w", err)
	}
	test := strings.HasSuffix(name, "_test.go")
	if p.name == "" && !test {
		p.name = f.ast.Name.Name
	}
	for _, d := range f.ast.Decls {
		for _, id := range declared(d) {
			p.names[id.Name] = f.fset.Position(id.Pos())
		}
	}
	if !test {
		p.files = append(p.files, f)
	}
	return nil
}

// declared returns the package-level names of a declaration.
func declared(d ast.Decl) (all []*ast.Ident) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			all = append(all, d.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				all = append(all, s.Name)
			case *ast.ValueSpec:
				all = append(all, s.Names...)
			}
		}
	}
	return all
}

// learn records imports, constants and kinds of a file.
func (p *Package) learn(f *file) {
	for _, i := range f.ast.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		name := path[strings.LastIndex(path, "/")+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		switch path {
		case gopfPath:
			f.gopf = name
		case metaPath:
			f.meta = name
		}
	}
	for _, d := range f.ast.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range g.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if f.meta != "" && embedsMeta(s, f.meta) {
					p.kinds = append(p.kinds, s.Name.Name)
				}
			case *ast.ValueSpec:
				for i, name := range s.Names {
					if i < len(s.Values) && g.Tok == token.CONST {
						if text, ok := literal(s.Values[i]); ok {
							p.consts[name.Name] = text
						}
					}
				}
			}
		}
	}
}

func literal(e ast.Expr) (string, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(l.Value)
	return text, err == nil
}

// embedsMeta reports whether a type is a struct that embeds metav1.ObjectMeta.
func embedsMeta(s *ast.TypeSpec, meta string) bool {
	st, ok := s.Type.(*ast.StructType)
	if !ok {
		return false
	}
	return slices.ContainsFunc(st.Fields.List, func(f *ast.Field) bool {
		return len(f.Names) == 0 && isSelector(f.Type, meta, "ObjectMeta")
	})
}

func isSelector(e ast.Expr, pkg, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg
}

// findHandles finds the calls of gopf.For in the functions of a file.
func (p *Package) findHandles(f *file) {
	if f.gopf == "" {
		return
	}
	for _, d := range f.ast.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			for _, s := range fn.Body.List {
				if h := f.handle(s); h != nil {
					h.extend(fn.Body.List)
					p.handles = append(p.handles, h)
				}
			}
		}
	}
}

// handle returns the handle that a statement declares, or nil.
func (f *file) handle(s ast.Stmt) (h *handle) {
	ast.Inspect(s, func(n ast.Node) bool {
		if _, nested := n.(*ast.FuncLit); nested || h != nil {
			return false
		}
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 {
			return true
		}
		index, ok := call.Fun.(*ast.IndexExpr)
		if !ok || !isSelector(index.X, f.gopf, "For") {
			return true
		}
		star, ok := index.Index.(*ast.StarExpr)
		if !ok {
			return true
		}
		kind, ok := star.X.(*ast.Ident)
		if !ok {
			return true
		}
		h = &handle{file: f, kind: kind.Name, resource: f.text(call.Args[1]), operator: f.text(call.Args[0]), after: s, ids: map[string]token.Position{}}
		if assign, ok := s.(*ast.AssignStmt); ok && len(assign.Lhs) == 1 && assign.Rhs[0] == ast.Expr(call) {
			if name, ok := assign.Lhs[0].(*ast.Ident); ok && name.Name != "_" {
				h.variable = name.Name
			}
		}
		return false
	})
	return h
}

// extend moves the place for new lines to after the last statement that uses the handle, and
// collects the ids of handlers.
func (h *handle) extend(body []ast.Stmt) {
	reached := false
	for _, s := range body {
		if s == h.after {
			reached = true
		}
		if !reached || h.variable == "" && s != h.after {
			continue
		}
		uses := s == h.after
		ast.Inspect(s, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				uses = uses || n.Name == h.variable
			case *ast.CallExpr:
				if sel, ok := n.Fun.(*ast.SelectorExpr); ok && len(n.Args) > 1 && strings.ToUpper(sel.Sel.Name[:1]) == sel.Sel.Name[:1] {
					for _, a := range n.Args[:2] {
						if id, ok := literal(a); ok {
							h.ids[id] = h.file.fset.Position(a.Pos())
							break
						}
					}
				}
			}
			return true
		})
		if _, isReturn := s.(*ast.ReturnStmt); uses && !isReturn {
			h.after = s
		}
	}
}

// text returns the source of an expression.
func (f *file) text(e ast.Expr) string {
	return string(f.src[f.fset.Position(e.Pos()).Offset:f.fset.Position(e.End()).Offset])
}

// of returns the handle for a kind. An empty kind means the only one.
func (p *Package) of(kind string) (*handle, error) {
	var kinds []string
	for _, h := range p.handles {
		if h.kind == kind {
			return h, nil
		}
		if !slices.Contains(kinds, h.kind) {
			kinds = append(kinds, h.kind)
		}
	}
	switch {
	case kind == "" && len(kinds) == 1:
		return p.handles[0], nil
	case kind == "" && len(kinds) == 0:
		return nil, errors.New("no function of this package declares handlers with gopf.For; add a kind first, with 'gopf add kind'")
	case kind == "":
		return nil, fmt.Errorf("there are several kinds; name one with --for: %s", strings.Join(kinds, ", "))
	case len(kinds) == 0:
		return nil, fmt.Errorf("no function of this package calls gopf.For[*%s]; declare the kind first, with 'gopf add kind %s'", kind, kind)
	}
	return nil, fmt.Errorf("no function of this package calls gopf.For[*%s]; the declared kinds are %s", kind, strings.Join(kinds, ", "))
}

// exists reports whether a file exists in the folder of the package.
func (p *Package) exists(name string) bool {
	_, err := os.Stat(filepath.Join(p.dir, name))
	return !errors.Is(err, fs.ErrNotExist)
}
