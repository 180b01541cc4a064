package python

import (
	"slices"
	"strings"
)

// StmtKind is the form of a statement.
type StmtKind uint8

// The forms of statements.
const (
	Other      StmtKind = iota // not understood, or without a meaning for the structure
	Def                        // a function: Name, Params, Decorators, Body
	Class                      // Name, Decorators, Body
	Block                      // if, for, while, with, try, …: Name is the keyword, Value its condition, Body
	Import                     // Imports
	Assign                     // Targets = Value
	Update                     // Targets[0] Name Value, such as +=
	Expression                 // Value
	Return                     // Value may be nil
	Raise                      // Value may be nil
	Pass
)

// Stmt is a statement.
type Stmt struct {
	Kind       StmtKind
	Name       string
	Params     []Param
	Decorators []*Expr
	Body       []*Stmt
	Imports    []Imported
	Targets    []*Expr
	Value      *Expr
	Line, End  int // the first and the last line, decorators and body included
	BodyLine   int // the first line of the body
}

// Imported is an imported name: Module is imported as As, or its member Member if that is
// not empty.
type Imported struct{ Module, Member, As string }

// File is a source file.
type File struct {
	Body  []*Stmt
	Lines []string
}

// Parse reads a source file. The error is a *SyntaxError.
func Parse(src string) (*File, error) {
	src = strings.ReplaceAll(src, "\r\n", "\n")
	tokens, err := tokenize(src)
	if err != nil {
		return nil, err
	}
	r := &reader{src: src, tokens: tokens}
	body := r.block()
	return &File{Body: body, Lines: strings.Split(src, "\n")}, nil
}

// reader groups tokens into statements and blocks.
type reader struct {
	src        string
	tokens     []token
	at         int
	decorators []*Expr
	decorated  int // the line of the first decorator
}

// block reads statements up to the end of the block.
func (r *reader) block() (body []*Stmt) {
	for r.at < len(r.tokens) {
		switch r.tokens[r.at].kind {
		case tokenDedent:
			return body
		case tokenIndent: // an unexpected one
			r.at++
			body = append(body, r.block()...)
			r.skipDedent()
		default:
			body = append(body, r.line()...)
		}
	}
	return body
}

func (r *reader) skipDedent() {
	if r.at < len(r.tokens) && r.tokens[r.at].kind == tokenDedent {
		r.at++
	}
}

// line reads the statements of a logical line, and the block after it.
func (r *reader) line() []*Stmt {
	from := r.at
	for r.at < len(r.tokens) && r.tokens[r.at].kind != tokenNewline {
		r.at++
	}
	tokens := r.tokens[from:r.at]
	end := r.tokens[min(r.at, len(r.tokens)-1)].line
	r.at++
	if len(tokens) == 0 {
		return nil
	}
	if tokens[0].text == "@" {
		if r.decorators == nil {
			r.decorated = tokens[0].line
		}
		r.decorators = append(r.decorators, expression(r.src, tokens[1:]))
		return nil
	}
	head, inline, compound := splitCompound(tokens)
	if !compound {
		r.decorators = nil
		return r.simple(tokens, end)
	}
	s := r.header(head)
	s.Line, s.End = tokens[0].line, end
	if len(r.decorators) > 0 {
		if s.Kind == Def || s.Kind == Class {
			s.Decorators, s.Line = r.decorators, r.decorated
		}
		r.decorators = nil
	}
	s.BodyLine = end + 1
	if len(inline) > 0 {
		s.BodyLine = inline[0].line
		s.Body = r.simple(inline, end)
		return []*Stmt{s}
	}
	if r.at < len(r.tokens) && r.tokens[r.at].kind == tokenIndent {
		r.at++
		s.Body = r.block()
		r.skipDedent()
		s.End = r.lastLine()
	}
	return []*Stmt{s}
}

// lastLine returns the line of the last statement that was read.
func (r *reader) lastLine() int {
	for i := min(r.at, len(r.tokens)) - 1; i >= 0; i-- {
		if r.tokens[i].kind == tokenNewline {
			return r.tokens[i].line
		}
	}
	return 1
}

var compounds = []string{"def", "class", "if", "elif", "else", "for", "while", "with", "try", "except", "finally", "async", "match", "case"}

// splitCompound splits a compound statement at its colon. Statements after the colon are on
// the same line.
func splitCompound(tokens []token) (head, inline []token, compound bool) {
	if tokens[0].kind != tokenName || !slices.Contains(compounds, tokens[0].text) {
		return nil, nil, false
	}
	level, lambdas := 0, 0
	for i, t := range tokens {
		switch {
		case t.kind == tokenOp && (t.text == "(" || t.text == "[" || t.text == "{"):
			level++
		case t.kind == tokenOp && (t.text == ")" || t.text == "]" || t.text == "}"):
			level--
		case level == 0 && t.kind == tokenName && t.text == "lambda":
			lambdas++
		case level == 0 && t.kind == tokenOp && t.text == ":":
			if lambdas > 0 {
				lambdas--
				continue
			}
			soft := tokens[0].text == "match" || tokens[0].text == "case"
			return tokens[:i], tokens[i+1:], !soft || i > 1 && i == len(tokens)-1
		}
	}
	return nil, nil, false
}

// header reads a compound statement without its body.
func (r *reader) header(head []token) *Stmt {
	if head[0].text == "async" && len(head) > 1 {
		head = head[1:]
	}
	s := &Stmt{Kind: Block, Name: head[0].text}
	p := &parser{src: r.src, tokens: head, at: 1}
	switch {
	case head[0].text == "def" && len(head) > 2 && head[1].kind == tokenName:
		s.Kind, s.Name = Def, head[1].text
		p.at = 2
		if p.accept("[") { // type parameters
			p.skipTo("]")
			p.expect("]")
		}
		p.expect("(")
		s.Params = p.params(")")
	case head[0].text == "class" && len(head) > 1 && head[1].kind == tokenName:
		s.Kind, s.Name = Class, head[1].text
	case len(head) > 1:
		s.Value = expression(r.src, head[1:])
	}
	return s
}

// simple reads the statements of a line without a block.
func (r *reader) simple(tokens []token, end int) (all []*Stmt) {
	for len(tokens) > 0 {
		n, level := 0, 0
		for ; n < len(tokens); n++ {
			t := tokens[n]
			if t.kind == tokenOp && t.text == ";" && level == 0 {
				break
			}
		}
		if n > 0 {
			s := r.one(tokens[:n])
			s.Line, s.End, s.BodyLine = tokens[0].line, end, tokens[0].line
			all = append(all, s)
		}
		tokens = tokens[min(n+1, len(tokens)):]
	}
	return all
}

func (r *reader) one(tokens []token) *Stmt {
	if first := tokens[0]; first.kind == tokenName {
		var value *Expr
		if len(tokens) > 1 {
			value = expression(r.src, tokens[1:])
		}
		switch first.text {
		case "import", "from":
			return &Stmt{Kind: Import, Imports: imports(tokens)}
		case "return":
			return &Stmt{Kind: Return, Value: value}
		case "raise":
			return &Stmt{Kind: Raise, Value: raised(r.src, tokens[1:])}
		case "pass":
			if len(tokens) == 1 {
				return &Stmt{Kind: Pass}
			}
		case "global", "nonlocal", "del", "assert", "break", "continue", "print", "exec", "type":
			if len(tokens) == 1 || tokens[1].kind != tokenOp || slices.Contains([]string{"del", "assert"}, first.text) {
				return &Stmt{}
			}
		}
	}
	return assignment(r.src, tokens)
}

// raised reads the exception of a raise statement, without its cause.
func raised(src string, tokens []token) *Expr {
	p := &parser{src: src, tokens: tokens}
	if len(tokens) == 0 {
		return nil
	}
	e := p.expr()
	if p.failed || p.at < len(tokens) && !p.is("from") {
		return &Expr{Line: tokens[0].line}
	}
	return e
}

func assignment(src string, tokens []token) *Stmt {
	var starts []int
	level := 0
	for i, t := range tokens {
		if t.kind != tokenOp {
			continue
		}
		switch {
		case strings.Contains("([{", t.text):
			level++
		case strings.Contains(")]}", t.text):
			level--
		case level > 0:
		case t.text == "=":
			starts = append(starts, i)
		case t.text == ":" && len(starts) == 0: // an annotation
			rest := tokens[i:]
			for j, a := range rest {
				if a.kind == tokenOp && a.text == "=" {
					return &Stmt{Kind: Assign, Targets: []*Expr{expression(src, tokens[:i])}, Value: expression(src, rest[j+1:])}
				}
			}
			return &Stmt{}
		case len(t.text) > 1 && strings.HasSuffix(t.text, "=") && !slices.Contains([]string{"==", "!=", "<=", ">=", ":="}, t.text) && len(starts) == 0:
			return &Stmt{Kind: Update, Name: t.text, Targets: []*Expr{expression(src, tokens[:i])}, Value: expression(src, tokens[i+1:])}
		}
	}
	if len(starts) == 0 {
		return &Stmt{Kind: Expression, Value: expression(src, tokens)}
	}
	s := &Stmt{Kind: Assign}
	from := 0
	for _, i := range starts {
		s.Targets = append(s.Targets, expression(src, tokens[from:i]))
		from = i + 1
	}
	s.Value = expression(src, tokens[from:])
	return s
}

// expression parses all tokens. If that fails, the kind of the expression is Unknown.
func expression(src string, tokens []token) *Expr {
	if len(tokens) == 0 {
		return &Expr{}
	}
	p := &parser{src: src, tokens: tokens}
	e := p.list()
	if p.failed || p.at != len(tokens) {
		first, last := tokens[0], tokens[len(tokens)-1]
		return &Expr{Line: first.line, Source: src[first.pos:last.end]}
	}
	return e
}

// imports reads an import statement.
func imports(tokens []token) (all []Imported) {
	p := &parser{tokens: tokens, at: 1}
	dotted := func() string {
		name := ""
		for p.at < len(tokens) && (p.peek().kind == tokenName && !p.is("import", "as") || p.is(".", "...")) {
			name += p.peek().text
			p.at++
		}
		return name
	}
	module := ""
	if tokens[0].text == "from" {
		module = dotted()
		if !p.accept("import") {
			return nil
		}
		p.accept("(")
	}
	for p.at < len(tokens) && !p.is(")") {
		name := dotted()
		if name == "" && p.accept("*") {
			name = "*"
		}
		as := name
		if p.accept("as") {
			as = p.peek().text
			p.at++
		}
		switch {
		case module != "":
			all = append(all, Imported{module, name, as})
		case as == name: // "import a.b" binds a
			first, _, _ := strings.Cut(name, ".")
			all = append(all, Imported{first, "", first})
		default:
			all = append(all, Imported{name, "", as})
		}
		if !p.accept(",") {
			break
		}
	}
	return all
}
