package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// mutant is one change of a file.
type mutant struct {
	file       string
	line, col  int
	start, end int // offsets of the replaced text in the file
	from, to   string
}

func (m mutant) String() string {
	to := oneLine(m.to)
	if to == "" {
		to = "nothing"
	}
	return fmt.Sprintf("%s:%d:%d: %s -> %s", m.file, m.line, m.col, oneLine(m.from), to)
}

// oneLine shortens a text for the report.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > 60 {
		s = string(runes[:60]) + "…"
	}
	return s
}

// apply returns the source with the change.
func (m mutant) apply(source []byte) []byte {
	return slices.Concat(source[:m.start], []byte(m.to), source[m.end:])
}

// swapped maps operators to those that they are commonly confused with.
var swapped = map[token.Token]token.Token{
	token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.LAND: token.LOR, token.LOR: token.LAND,
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL,
}

// mutate returns all mutants of a file, in the order of the source.
func mutate(name string, source []byte) ([]mutant, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	f := &finder{name: name, source: source, files: files, ignored: map[ast.Node]bool{}}
	for _, d := range file.Decls {
		f.declaration(d)
	}
	skipped := f.skipped(file.Comments)
	f.found = slices.DeleteFunc(f.found, func(m mutant) bool { return skipped[m.line] })
	slices.SortStableFunc(f.found, func(a, b mutant) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.to, b.to)) })
	return f.found, nil
}

// skip is the beginning of a comment on a line whose mutants cannot be detected, for example
// because it only makes the code faster. The comment states the reason.
const skip = "//mutate:skip "

// skipped returns the lines with such comments.
func (f *finder) skipped(comments []*ast.CommentGroup) map[int]bool {
	lines := map[int]bool{}
	for _, group := range comments {
		for _, c := range group.List {
			if strings.HasPrefix(c.Text, skip) {
				lines[f.files.Position(c.Pos()).Line] = true
			}
		}
	}
	return lines
}

type finder struct {
	name   string
	source []byte
	files  *token.FileSet
	found  []mutant

	ignored map[ast.Node]bool // literals that are not mutated
}

func (f *finder) text(n ast.Node) string {
	return string(f.source[f.offset(n.Pos()):f.offset(n.End())])
}

func (f *finder) offset(p token.Pos) int { return f.files.Position(p).Offset }

func (f *finder) add(start, end token.Pos, to string) {
	at := f.files.Position(start)
	from, until := f.offset(start), f.offset(end)
	f.found = append(f.found, mutant{f.name, at.Line, at.Column, from, until, string(f.source[from:until]), to})
}

func (f *finder) declaration(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Body != nil {
			f.body(d.Body, d.Type.Results)
		}
	case *ast.GenDecl:
		if d.Tok == token.CONST || d.Tok == token.VAR {
			f.body(d, nil)
		}
	}
}

// body finds the mutants in a function with these results, or in a declaration.
func (f *finder) body(within ast.Node, results *ast.FieldList) {
	ast.Inspect(within, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			f.body(n.Body, n.Type.Results)
			return false
		case *ast.BinaryExpr:
			if to, ok := swapped[n.Op]; ok {
				f.add(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), to.String())
			}
		case *ast.CallExpr:
			f.ignoreFormats(n)
		case *ast.BasicLit:
			if !f.ignored[n] {
				f.literal(n)
			}
		case *ast.IfStmt:
			f.condition(n.Cond)
		case *ast.ForStmt:
			if n.Cond != nil {
				f.add(n.Cond.Pos(), n.Cond.End(), "false && ("+f.text(n.Cond)+")")
			}
		case *ast.ReturnStmt:
			f.result(n, results)
		case *ast.BlockStmt:
			f.statements(n.List)
		case *ast.CaseClause:
			f.statements(n.Body)
		case *ast.CommClause:
			f.statements(n.Body)
		}
		return true
	})
}

// ignoreFormats ignores bases, precisions and bit sizes in calls of strconv, because most
// other values have the same effect.
func (f *finder) ignoreFormats(call *ast.CallExpr) {
	fn, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || f.text(fn.X) != "strconv" {
		return
	}
	for _, arg := range call.Args {
		if sign, ok := arg.(*ast.UnaryExpr); ok {
			arg = sign.X
		}
		f.ignored[arg] = true
	}
}

// literal adds one to a number.
func (f *finder) literal(n *ast.BasicLit) {
	if n.Kind != token.INT {
		return
	}
	if v, err := strconv.ParseInt(n.Value, 0, 32); err == nil {
		f.add(n.Pos(), n.End(), strconv.FormatInt(v+1, 10))
	}
}

// condition negates a condition, unless the mutant of its operator has the same effect.
func (f *finder) condition(cond ast.Expr) {
	if b, ok := cond.(*ast.BinaryExpr); ok && (b.Op == token.EQL || b.Op == token.NEQ) {
		return
	}
	f.add(cond.Pos(), cond.End(), "!("+f.text(cond)+")")
}

// statements removes statements that only have side effects.
func (f *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if call, ok := s.X.(*ast.CallExpr); !ok || f.unnoticed(call) {
				continue
			}
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE || f.text(s.Lhs[0]) == "_" {
				continue
			}
		case *ast.IncDecStmt, *ast.BranchStmt, *ast.SendStmt:
		default:
			continue
		}
		f.add(s.Pos(), s.End(), "")
	}
}

// unnoticed reports whether a call should not be tested: debug log lines, and panics, which
// the compiler may need.
func (f *finder) unnoticed(call *ast.CallExpr) bool {
	switch fn := call.Fun.(type) {
	case *ast.SelectorExpr:
		return fn.Sel.Name == "Debug"
	case *ast.Ident:
		return fn.Name == "panic"
	}
	return false
}

// result makes a function return zero values.
func (f *finder) result(n *ast.ReturnStmt, results *ast.FieldList) {
	if results == nil || len(n.Results) == 0 {
		return
	}
	var zeros []string
	for _, field := range results.List {
		for range max(1, len(field.Names)) {
			zeros = append(zeros, "*new("+f.text(field.Type)+")")
		}
	}
	if len(zeros) != len(n.Results) { // returns the results of another call
		f.add(n.Results[0].Pos(), n.End(), strings.Join(zeros, ", "))
		return
	}
	if slices.ContainsFunc(n.Results, func(e ast.Expr) bool { return !f.isZero(e) }) {
		f.add(n.Results[0].Pos(), n.End(), strings.Join(zeros, ", "))
	}
}

// isZero reports whether the expression is a zero value. An empty literal of a named
// type counts: nearly all such types are structs.
func (f *finder) isZero(e ast.Expr) bool {
	if literal, ok := e.(*ast.CompositeLit); ok && len(literal.Elts) == 0 {
		switch literal.Type.(type) {
		case *ast.Ident, *ast.SelectorExpr:
			return true
		}
	}
	return slices.Contains([]string{"nil", "false", "0", `""`, "``"}, f.text(e))
}
