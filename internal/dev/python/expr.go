package python

import (
	"slices"
	"strings"
)

// ExprKind is the form of an expression.
type ExprKind uint8

// The forms of expressions. X, Args and Keywords are fields of Expr.
const (
	Unknown   ExprKind = iota // not understood: only Source is set
	Name                      // Value
	Attribute                 // X.Value
	Call                      // X(Args, Keywords)
	String                    // Value
	Formatted                 // an f-string: Args, each a String or an expression
	Number                    // Value
	Constant                  // Value: True, False, None or ...
	List                      // Args
	Tuple                     // Args
	Set                       // Args
	Dict                      // Args: key, value, key, value; a nil key means **value
	Subscript                 // X[Args[0]]
	Unary                     // Value is the operator, X the operand
	Binary                    // Args[0] Value Args[1]; comparisons and "and", "or" as well
	Lambda                    // Params, X
	If                        // Args[0] if Args[1] else Args[2]
	Starred                   // *X
	Await                     // await X
)

// Expr is an expression.
type Expr struct {
	Kind     ExprKind
	Value    string
	X        *Expr
	Args     []*Expr
	Keywords []Keyword
	Params   []Param
	Line     int
	Source   string // as in the file
}

// Keyword is an argument with a name. An empty name means **Value.
type Keyword struct {
	Name  string
	Value *Expr
}

// Param is a parameter of a function: "name", "*name" or "**name".
type Param struct {
	Name    string
	Default *Expr // nil means none
}

// Dotted returns the names of a chain of attributes, such as "kopf.on.create".
func (e *Expr) Dotted() (string, bool) {
	switch {
	case e == nil:
	case e.Kind == Name:
		return e.Value, true
	case e.Kind == Attribute:
		if x, ok := e.X.Dotted(); ok {
			return x + "." + e.Value, true
		}
	}
	return "", false
}

// parser parses the tokens of one statement. After a failure, it makes no progress.
type parser struct {
	src    string
	tokens []token
	at     int
	depth  int
	failed bool
}

func (p *parser) peek() token {
	if p.at < len(p.tokens) {
		return p.tokens[p.at]
	}
	return token{kind: tokenNewline}
}

// is reports whether the next token is the operator or keyword.
func (p *parser) is(texts ...string) bool {
	t := p.peek()
	return (t.kind == tokenOp || t.kind == tokenName) && slices.Contains(texts, t.text)
}

func (p *parser) accept(text string) bool {
	if p.is(text) {
		p.at++
		return true
	}
	return false
}

func (p *parser) expect(text string) {
	if !p.accept(text) {
		p.failed = true
	}
}

// node sets the source of an expression that begins at the token from.
func (p *parser) node(from int, e Expr) *Expr {
	if from < len(p.tokens) && p.at > from {
		first, last := p.tokens[from], p.tokens[min(p.at, len(p.tokens))-1]
		e.Line, e.Source = first.line, p.src[first.pos:last.end]
	}
	return &e
}

// list parses expressions with commas between them, up to one of the given tokens. Several
// expressions, or a comma at the end, are a tuple.
func (p *parser) list(end ...string) *Expr {
	from := p.at
	var all []*Expr
	comma := false
	for p.at < len(p.tokens) && !p.is(end...) && !p.failed {
		all = append(all, p.element())
		if comma = p.accept(","); !comma {
			break
		}
	}
	if len(all) == 1 && !comma {
		return all[0]
	}
	return p.node(from, Expr{Kind: Tuple, Args: all})
}

// element parses an expression that may have a star before it, or a name and := before it.
func (p *parser) element() *Expr {
	from := p.at
	if p.accept("*") {
		return p.node(from, Expr{Kind: Starred, X: p.binary(0)})
	}
	e := p.expr()
	if p.accept(":=") {
		return p.node(from, Expr{Kind: Unknown, X: p.expr()})
	}
	return e
}

func (p *parser) expr() *Expr {
	if p.depth++; p.depth > maxNested {
		p.failed = true
	}
	defer func() { p.depth-- }()
	if p.failed {
		return &Expr{}
	}
	from := p.at
	if p.accept("lambda") {
		params := p.params(":")
		p.expect(":")
		return p.node(from, Expr{Kind: Lambda, Params: params, X: p.expr()})
	}
	e := p.binary(0)
	if !p.accept("if") {
		return e
	}
	condition := p.binary(0)
	p.expect("else")
	return p.node(from, Expr{Kind: If, Args: []*Expr{e, condition, p.expr()}})
}

// levels are the binary operators, the weakest first.
var levels = [][]string{
	{"or"}, {"and"}, {"not"},
	{"==", "!=", "<>", "<", ">", "<=", ">=", "in", "is"},
	{"|"}, {"^"}, {"&"}, {"<<", ">>"}, {"+", "-"}, {"*", "/", "//", "%", "@"},
}

const (
	levelNot     = 2
	levelCompare = 3
)

func (p *parser) binary(level int) *Expr {
	from := p.at
	if level == len(levels) {
		return p.unary()
	}
	if level == levelNot {
		if !p.accept("not") {
			return p.binary(level + 1)
		}
		if p.depth++; p.depth > maxNested {
			p.failed = true
			return &Expr{}
		}
		defer func() { p.depth-- }()
		return p.node(from, Expr{Kind: Unary, Value: "not", X: p.binary(level)})
	}
	e := p.binary(level + 1)
	for !p.failed {
		op := p.peek().text
		switch {
		case level == levelCompare && p.is("not") && p.at+1 < len(p.tokens) && p.tokens[p.at+1].text == "in":
			op = "not in"
			p.at += 2
		case p.is(levels[level]...):
			p.at++
			if op == "is" && p.accept("not") {
				op = "is not"
			}
		default:
			return e
		}
		e = p.node(from, Expr{Kind: Binary, Value: op, Args: []*Expr{e, p.binary(level + 1)}})
	}
	return e
}

func (p *parser) unary() *Expr {
	from := p.at
	if p.depth++; p.depth > maxNested {
		p.failed = true
	}
	defer func() { p.depth-- }()
	if p.failed {
		return &Expr{}
	}
	if p.is("-", "+", "~") {
		op := p.peek().text
		p.at++
		return p.node(from, Expr{Kind: Unary, Value: op, X: p.unary()})
	}
	if p.is("await") {
		p.at++
		return p.node(from, Expr{Kind: Await, X: p.unary()})
	}
	e := p.trailers(from, p.atom())
	if p.accept("**") {
		return p.node(from, Expr{Kind: Binary, Value: "**", Args: []*Expr{e, p.unary()}})
	}
	return e
}

// trailers parses attributes, calls and subscripts.
func (p *parser) trailers(from int, e *Expr) *Expr {
	for !p.failed {
		switch {
		case p.accept("."):
			name := p.peek()
			if name.kind != tokenName {
				p.failed = true
				return e
			}
			p.at++
			e = p.node(from, Expr{Kind: Attribute, X: e, Value: name.text})
		case p.accept("("):
			args, keywords := p.arguments()
			e = p.node(from, Expr{Kind: Call, X: e, Args: args, Keywords: keywords})
		case p.accept("["):
			inner := p.at
			index := p.list("]")
			if !p.is("]") { // a slice
				p.skipTo("]")
				index = p.node(inner, Expr{Kind: Unknown})
			}
			p.expect("]")
			e = p.node(from, Expr{Kind: Subscript, X: e, Args: []*Expr{index}})
		default:
			return e
		}
	}
	return e
}

// arguments parses the arguments of a call, and the bracket after them.
func (p *parser) arguments() (args []*Expr, keywords []Keyword) {
	for !p.failed && !p.accept(")") {
		from := p.at
		switch {
		case p.accept("**"):
			keywords = append(keywords, Keyword{"", p.expr()})
		case p.peek().kind == tokenName && p.at+1 < len(p.tokens) && p.tokens[p.at+1].text == "=":
			name := p.peek().text
			p.at += 2
			keywords = append(keywords, Keyword{name, p.expr()})
		default:
			e := p.element()
			if p.is("for", "async") { // a generator
				p.skipTo(")")
				e = p.node(from, Expr{Kind: Unknown})
			}
			args = append(args, e)
		}
		if !p.accept(",") {
			p.expect(")")
			break
		}
	}
	return args, keywords
}

// skipTo skips tokens up to the bracket that closes the present level.
func (p *parser) skipTo(end string) {
	for level := 0; p.at < len(p.tokens); p.at++ {
		switch {
		case p.is("(", "[", "{"):
			level++
		case p.is(")", "]", "}"):
			if level == 0 {
				p.failed = p.failed || !p.is(end)
				return
			}
			level--
		}
	}
	p.failed = true
}

// params parses parameters up to the token end, which stays.
func (p *parser) params(end string) (params []Param) {
	for !p.failed && p.at < len(p.tokens) && !p.is(end) {
		star := ""
		switch {
		case p.accept("**"):
			star = "**"
		case p.accept("*"):
			star = "*"
		case p.accept("/"):
		}
		name := p.peek()
		if name.kind != tokenName {
			if p.accept("(") { // Python 2: a tuple
				p.skipTo(")")
				p.expect(")")
			}
			if !p.accept(",") && !p.is(end) {
				p.failed = true
			}
			continue
		}
		p.at++
		param := Param{Name: star + name.text}
		if end == ")" && p.accept(":") {
			p.element()
		}
		if p.accept("=") {
			param.Default = p.expr()
		}
		params = append(params, param)
		if !p.accept(",") && !p.is(end) {
			p.failed = true
		}
	}
	return params
}

var constants = []string{"True", "False", "None"}

// reserved are keywords that begin no operand.
var reserved = []string{"if", "else", "for", "in", "is", "and", "or", "not", "def", "class", "return", "raise", "import", "from", "as", "pass", "while", "with", "try", "except", "finally", "del", "global", "nonlocal", "assert", "lambda"}

func (p *parser) atom() *Expr {
	from, t := p.at, p.peek()
	switch {
	case t.kind == tokenString:
		return p.text()
	case t.kind == tokenNumber:
		p.at++
		return p.node(from, Expr{Kind: Number, Value: strings.ReplaceAll(t.text, "_", "")})
	case t.kind == tokenName && slices.Contains(constants, t.text), t.text == "...":
		p.at++
		return p.node(from, Expr{Kind: Constant, Value: t.text})
	case p.is("yield"):
		p.at++
		p.accept("from")
		if p.at < len(p.tokens) && !p.is(")", "]", "}") {
			p.list(")")
		}
		return p.node(from, Expr{Kind: Unknown})
	case t.kind == tokenName && !slices.Contains(reserved, t.text):
		p.at++
		return p.node(from, Expr{Kind: Name, Value: t.text})
	case p.accept("("):
		e := p.list(")")
		if p.is("for", "async") {
			p.skipTo(")")
			e = &Expr{}
		}
		p.expect(")")
		return p.node(from, *e)
	case p.accept("["):
		return p.display(from, List, "]")
	case p.accept("{"):
		return p.display(from, Set, "}")
	}
	p.failed = true
	return &Expr{}
}

// display parses a list, a set or a dictionary after its opening bracket.
func (p *parser) display(from int, kind ExprKind, end string) *Expr {
	var args []*Expr
	if end == "}" && p.is("}") {
		kind = Dict
	}
	for !p.failed && !p.accept(end) {
		switch {
		case end == "}" && p.accept("**"):
			kind = Dict
			args = append(args, nil, p.expr())
		default:
			args = append(args, p.element())
			if end == "}" && p.accept(":") {
				kind = Dict
				args = append(args, p.expr())
			}
		}
		if p.is("for", "async") {
			p.skipTo(end)
			p.expect(end)
			return p.node(from, Expr{Kind: Unknown})
		}
		if !p.accept(",") {
			p.expect(end)
			break
		}
	}
	if kind == Dict && len(args)%2 != 0 {
		p.failed = true
		return &Expr{}
	}
	return p.node(from, Expr{Kind: kind, Args: args})
}

// text parses adjacent string literals, which are one string.
func (p *parser) text() *Expr {
	from := p.at
	e := Expr{Kind: String}
	var parts []*Expr
	for p.peek().kind == tokenString {
		t := p.peek()
		p.at++
		value, fields, bytes := literal(t.text)
		if bytes {
			e.Kind = Unknown
		}
		if fields == nil {
			e.Value += value
			parts = append(parts, &Expr{Kind: String, Value: value, Line: t.line})
			continue
		}
		if e.Kind == String {
			e.Kind = Formatted
		}
		for _, f := range fields {
			if !f.expression {
				parts = append(parts, &Expr{Kind: String, Value: f.text, Line: t.line})
				continue
			}
			x := parseField(f.text, t.line, p.depth)
			if f.format != "" && f.format != "!r" && f.format != "!s" {
				x.Kind = Unknown
			}
			parts = append(parts, x)
		}
	}
	if e.Kind == Formatted {
		e.Value, e.Args = "", parts
	}
	return p.node(from, e)
}

// parseField parses the expression in an f-string.
func parseField(src string, line, depth int) *Expr {
	l := &lexer{src: "(" + strings.TrimSuffix(strings.TrimSpace(src), "=") + ")", line: line, columns: []int{0}}
	if err := l.statement(); err != nil {
		return &Expr{Source: src, Line: line}
	}
	p := &parser{src: l.src, tokens: l.tokens[:len(l.tokens)-1], depth: depth + 10}
	e := p.expr()
	if p.failed || p.at != len(p.tokens) {
		return &Expr{Source: src, Line: line}
	}
	return e
}
