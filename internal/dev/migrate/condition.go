package migrate

import (
	"go/ast"
	"go/parser"
	"slices"
	"strconv"
	"strings"

	"gopf.dev/gopf/internal/dev/python"
)

// condition translates an expression whose truth matters.
func (t *env) condition(e *python.Expr, depth int) (string, bool) {
	if e == nil || depth > maxDepth {
		return "", false
	}
	switch {
	case e.Kind == python.Unary && e.Value == "not":
		x, ok := t.condition(e.X, depth+1)
		return "!(" + x + ")", ok
	case e.Kind == python.Binary && (e.Value == "and" || e.Value == "or"):
		a, ok := t.condition(e.Args[0], depth+1)
		b, also := t.condition(e.Args[1], depth+1)
		op := map[string]string{"and": " && ", "or": " || "}[e.Value]
		return "(" + a + op + b + ")", ok && also
	case e.Kind == python.Binary && (e.Value == "in" || e.Value == "not in"):
		return t.contains(e, depth)
	case e.Kind == python.Binary:
		return t.compare(e, depth)
	}
	code, typ, ok := t.value(e, depth+1)
	switch {
	case !ok:
		return "", false
	case typ == typeBool:
		return code, true
	case typ == typeString:
		return code + ` != ""`, true
	case typ == typeInt:
		return code + " != 0", true
	case typ == typeAny && code != "nil":
		t.o.helpers["truthy"] = true
		return "truthy(" + code + ")", true
	}
	return "", false
}

// contains translates "'key' in spec", and "value in ['a', 'b']".
func (t *env) contains(e *python.Expr, depth int) (string, bool) {
	not := ""
	if e.Value == "not in" {
		not = "!"
	}
	key, container := e.Args[0], e.Args[1]
	if keys, ok := t.path(container, 0); ok {
		k, ok := t.o.text(t.m, key, 0)
		if !ok || !k.constant {
			return "", false
		}
		t.o.helpers["at"] = true
		op := map[string]string{"": " != nil", "!": " == nil"}[not]
		return "at(" + t.v + ", " + quoted(append(keys[:len(keys):len(keys)], k.is)) + ")" + op, true
	}
	if container.Kind != python.List && container.Kind != python.Tuple && container.Kind != python.Set || len(container.Args) == 0 {
		return "", false
	}
	var all []string
	for _, item := range container.Args {
		one, ok := t.compare(&python.Expr{Kind: python.Binary, Value: "==", Args: []*python.Expr{key, item}}, depth+1)
		if !ok {
			return "", false
		}
		all = append(all, one)
	}
	return not + "(" + strings.Join(all, " || ") + ")", true
}

// compare translates a comparison of values whose types are known well enough.
func (t *env) compare(e *python.Expr, depth int) (string, bool) {
	op := map[string]string{"==": "==", "!=": "!=", "<>": "!=", "is": "==", "is not": "!=", "<": "<", ">": ">", "<=": "<=", ">=": ">="}[e.Value]
	a, at, ok := t.value(e.Args[0], depth+1)
	b, bt, also := t.value(e.Args[1], depth+1)
	if op == "" || !ok || !also || e.Args[0].Kind == python.Binary {
		return "", false
	}
	if bt == typeAny && at != typeAny && b != "nil" { // the constant goes to the right
		a, b, at, bt = b, a, bt, at
	}
	ordered := strings.ContainsAny(op, "<>")
	switch {
	case b == "nil" && (strings.HasSuffix(a, ".Event") || strings.HasSuffix(a, ".Type")):
		return a + " " + op + ` ""`, !ordered // list items have no type
	case b == "nil":
		return a + " " + op + " nil", at == typeAny && a != "nil" && !ordered
	case at == typeAny && bt == typeNumber && !ordered:
		if strings.ContainsAny(b, ".e") {
			return a + " " + op + " float64(" + b + ")", true
		}
		return a + " " + op + " int64(" + b + ")", true
	case at == typeAny && (bt == typeString || bt == typeBool) && !ordered:
		return a + " " + op + " any(" + b + ")", true
	case at == typeString && bt == typeString && !ordered:
		return a + " " + op + " " + b, true
	case at == typeInt && bt == typeNumber && !strings.Contains(b, "."):
		return a + " " + op + " " + b, true
	}
	return "", false
}

// stub is a Go function for a Python function that is used as a filter.
type stub struct {
	key, name, params string
	comment           []string
	body              string
}

// stub returns a Go function for a callable: a literal if it is a short lambda, or else the
// name of a function of the skeleton.
func (a *arguments) stub(e *python.Expr, params, family string) string {
	if family == "" {
		family = "value"
	}
	body, source, line, name := (*python.Expr)(nil), e.Source, e.Line, "filter"
	var names []python.Param
	m := a.m
	switch e.Kind {
	case python.Lambda:
		body, names = e.X, e.Params
	case python.Name, python.Attribute:
		for _, s := range a.m.file.Body {
			if dotted, _ := e.Dotted(); s.Kind == python.Def && s.Name == dotted {
				name, names, line = identifier(s.Name), s.Params, s.Line
				source = strings.Join(a.m.file.Lines[s.Line-1:min(s.End, len(a.m.file.Lines))], "\n")
				if statements := withoutDocstring(s.Body); len(statements) == 1 && statements[0].Kind == python.Return {
					body = statements[0].Value
				}
			}
		}
	}
	if family == "value" && len(names) > 0 && !strings.HasPrefix(names[0].Name, "*") {
		body = rename(body, names[0].Name)
		names = append([]python.Param{{Name: "value"}}, names[1:]...)
	}
	t := a.o.env(m, family, names)
	if family == "value" {
		t.v = "value"
	}
	code, ok := "", false
	if body != nil {
		code, ok = t.condition(body, 0)
	}
	if ok && e.Kind == python.Lambda {
		return "func(" + params + ") bool { return " + trim(code) + " }"
	}
	key := a.m.name + "\x00" + source + "\x00" + params
	for _, s := range a.o.stubs {
		if s.key == key {
			if !ok {
				a.left("the filter %s is not translated; see the function %s", short(e.Source), s.name)
			}
			return s.name
		}
	}
	s := stub{key: key, name: a.o.unique(name), params: params, comment: strings.Split(source, "\n")}
	s.body = "return " + trim(code)
	if !ok {
		s.body = "panic(" + constant("not translated: "+short(e.Source)+" of "+a.m.name).code + ")"
		a.left("the filter %s is not translated; see the function %s", short(e.Source), s.name)
		a.o.report.note(a.m, line, "until the function %s is translated, objects are not handled: it panics", s.name)
	}
	a.o.stubs = append(a.o.stubs, s)
	return s.name
}

// rename returns a copy of the expression in which the name is "value".
func rename(e *python.Expr, name string) *python.Expr {
	if e == nil {
		return nil
	}
	c := *e
	if c.Kind == python.Name && c.Value == name {
		c.Value = "value"
	}
	c.X = rename(e.X, name)
	c.Args = nil
	for _, a := range e.Args {
		c.Args = append(c.Args, rename(a, name))
	}
	return &c
}

// trim removes redundant outer brackets.
func trim(code string) string {
	if e, err := parser.ParseExpr(code); err == nil {
		if _, ok := e.(*ast.ParenExpr); ok {
			return code[1 : len(code)-1]
		}
	}
	return code
}

const candidate = "c *gopf.Candidate[gopf.Unstructured]"

// when translates a condition: a function, or a combination of functions.
func (a *arguments) when(e *python.Expr) string {
	if e.Kind == python.Call {
		if name, ok := a.m.kopf(e.X); ok && len(e.Args) == 1 {
			list := []*python.Expr{e.Args[0]}
			if k := e.Args[0].Kind; k == python.List || k == python.Tuple {
				list = e.Args[0].Args
			}
			before, op, known := "", " && ", true
			switch name {
			case "all_":
			case "any_":
				op = " || "
			case "none_":
				before, op = "!", " || "
			case "not_":
				before = "!"
			default:
				known = false
			}
			if known && len(list) > 0 {
				var all []string
				for _, x := range list {
					f := a.when(x)
					if strings.HasPrefix(f, "func(") {
						f = "(" + f + ")"
					}
					all = append(all, f+"(c)")
				}
				return "func(" + candidate + ") bool { return " + before + "(" + strings.Join(all, op) + ") }"
			}
		}
	}
	return a.stub(e, candidate, "when")
}

func withoutDocstring(body []*python.Stmt) []*python.Stmt {
	if len(body) > 0 && body[0].Kind == python.Expression && body[0].Value.Kind == python.String {
		return body[1:]
	}
	return body
}

// unique returns a Go name that is not taken yet.
func (o *operator) unique(name string) string {
	if slices.Contains(goNames, name) {
		name += "Handler"
	}
	candidate := name
	for i := 2; o.taken[candidate]; i++ {
		candidate = name + strconv.Itoa(i)
	}
	o.taken[candidate] = true
	return candidate
}
