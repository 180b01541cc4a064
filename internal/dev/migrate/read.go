package migrate

import (
	"fmt"
	"strings"

	"gopf.dev/gopf/internal/dev/python"
)

// scope is the place of a statement: the prefix of qualified names, and whether it is in a
// loop or a condition.
type scope struct {
	prefix string
	block  string
}

// read collects the handlers of statements.
func (o *operator) read(m *module, body []*python.Stmt, in scope) {
	for _, s := range body {
		switch s.Kind {
		case python.Def:
			o.function(m, s, in)
			o.read(m, s.Body, scope{prefix: in.prefix + s.Name + ".<locals>.", block: in.block})
		case python.Class:
			o.read(m, s.Body, scope{prefix: in.prefix + s.Name + ".", block: in.block})
		case python.Block:
			o.read(m, s.Body, scope{prefix: in.prefix, block: s.Name})
		case python.Expression:
			o.registration(m, s, in)
		}
	}
}

// function reads the decorators of a function, from the last to the first, as Python does.
func (o *operator) function(m *module, s *python.Stmt, in scope) {
	f := &function{module: m, stmt: s, name: in.prefix + s.Name, gos: map[string]string{}}
	foreign := ""
	used := false
	for i := len(s.Decorators) - 1; i >= 0; i-- {
		d := s.Decorators[i]
		name, call, ok := o.decorator(m, d)
		if !ok {
			if d.Kind != python.Unknown || foreign == "" {
				foreign = strings.TrimSpace(d.Source)
			}
			if strings.Contains(d.Source, "kopf.on") || strings.Contains(d.Source, "kopf.daemon") {
				o.report.Decorators++
				o.report.left(m, d.Line, "the decorator @%s is not understood", short(d.Source))
			}
			continue
		}
		if name == "subhandler" {
			continue // with the body of its parent
		}
		h := o.handler(f, name, call, d)
		if in.block == "for" || in.block == "while" {
			h.block("it is declared in a loop")
		}
		if foreign != "" && !hasKeyword(call, "id") {
			o.report.note(m, d.Line, "the id of %s is %q only if the decorator @%s uses functools.wraps", s.Name, f.name, short(foreign))
		}
		used = true
		o.add(h)
	}
	if used {
		o.funcs = append(o.funcs, f)
		o.arguments(f)
	} else if wraps := o.wrapper(m, s); wraps != "" {
		o.report.left(m, s.Line, "%s creates handlers with kopf.%s by itself: translate each of its uses", s.Name, wraps)
	}
}

// wrapper returns the name of a decorator that the function calls without being decorated
// itself: it is a decorator of the operator's own.
func (o *operator) wrapper(m *module, s *python.Stmt) string {
	found := ""
	walk(s.Body, func(e *python.Expr) {
		if e.Kind != python.Call || found != "" {
			return
		}
		if name, _, ok := o.decorator(m, e); ok && name != "subhandler" {
			found = "on." + name
		}
	})
	return found
}

func hasKeyword(call *python.Expr, name string) bool {
	if call != nil {
		for _, k := range call.Keywords {
			if k.Name == name && k.Value.Value != "None" {
				return true
			}
		}
	}
	return false
}

// decorator returns the name of a decorator of Kopf, and its call.
func (o *operator) decorator(m *module, e *python.Expr) (name string, call *python.Expr, ok bool) {
	x := e
	if e.Kind == python.Call {
		x, call = e.X, e
	}
	member, ok := m.kopf(x)
	if !ok {
		return "", nil, false
	}
	name = strings.TrimPrefix(member, "on.")
	if name == "subhandler" || name == "on.this" {
		return "subhandler", call, true
	}
	_, known := families[name]
	short := name == "daemon" || name == "timer" || name == "index"
	return name, call, known && (short || strings.HasPrefix(member, "on."))
}

// registration reads "kopf.on.create(…)(fn)", and notes other calls at the top level.
func (o *operator) registration(m *module, s *python.Stmt, in scope) {
	call := s.Value
	if call.Kind != python.Call || call.X.Kind != python.Call || len(call.Args) != 1 {
		return
	}
	name, inner, ok := o.decorator(m, call.X)
	if !ok || name == "subhandler" {
		return
	}
	target, _ := call.Args[0].Dotted()
	for _, def := range m.file.Body {
		if def.Kind == python.Def && def.Name == target {
			f := &function{module: m, stmt: def, name: def.Name, gos: map[string]string{}}
			h := o.handler(f, name, inner, call)
			if in.block == "for" || in.block == "while" {
				h.block("it is declared in a loop")
			}
			o.add(h)
			o.funcs = append(o.funcs, f)
			o.arguments(f)
			return
		}
	}
	o.report.Decorators++
	o.report.left(m, s.Line, "the handler %s of %s is not a function of this file", short(call.Args[0].Source), short(call.X.Source))
}

// add adds a handler. Decorators of one function that differ only in their reasons become one
// declaration when the operator is written.
func (o *operator) add(h *handler) {
	o.report.Decorators++
	if len(h.todo) == 0 {
		o.report.Translated++
	}
	o.handlers = append(o.handlers, h)
	for _, t := range h.todo {
		o.report.left(h.fn.module, h.line, "@%s of %s: %s", h.decorator, h.fn.name, t)
	}
}

// handler reads the arguments of a decorator.
func (o *operator) handler(f *function, name string, call, d *python.Expr) *handler {
	h := &handler{fn: f, decorator: name, id: f.name, label: families[name], line: d.Line}
	if call == nil {
		if h.label != "activity" && h.label != "login" && h.label != "probe" {
			h.block("it has no arguments, which Kopf refuses")
		}
		return h
	}
	a := &arguments{o: o, m: f.module, h: h}
	call = o.expanded(f.module, call)
	a.keywords(call.Keywords)
	if name := h.label; name != "activity" && name != "login" && name != "probe" {
		h.resource = a.selector(call)
	}
	a.fieldFilters()
	if name == "timer" && h.every == "" && !h.blocked {
		h.block("it has no interval")
	}
	if name == "field" && h.field == "" && !h.blocked {
		h.block("it has no field")
	}
	return h
}

// arguments counts the arguments of a function, and reports the unknown ones.
func (o *operator) arguments(f *function) {
	for _, p := range f.stmt.Params {
		name := p.Name
		if strings.HasPrefix(name, "*") || name == "self" || name == "_" || strings.HasPrefix(name, "__") {
			if strings.HasPrefix(name, "**") && usesName(f.stmt.Body, strings.TrimLeft(name, "*")) {
				o.report.note(f.module, f.stmt.Line, "%s uses %s: pass its values on by name", f.name, name)
			}
			continue
		}
		o.report.Arguments++
		if _, ok := members[name]; ok || p.Default != nil {
			o.report.Mapped++
			continue
		}
		o.report.Mapped++ // the name of an index, which is a variable in Go
		o.report.note(f.module, f.stmt.Line, "the argument %s of %s is an index: use the variable that gopf.Index returns", name, f.name)
	}
}

// usesName reports whether a name occurs in statements.
func usesName(body []*python.Stmt, name string) bool {
	found := false
	walk(body, func(e *python.Expr) { found = found || e.Kind == python.Name && e.Value == name })
	return found
}

// walk calls fn for all expressions of statements, except decorators.
func walk(body []*python.Stmt, fn func(*python.Expr)) {
	for _, s := range body {
		for _, e := range append([]*python.Expr{s.Value}, s.Targets...) {
			walkExpr(e, fn)
		}
		walk(s.Body, fn)
	}
}

func walkExpr(e *python.Expr, fn func(*python.Expr)) {
	if e == nil {
		return
	}
	fn(e)
	walkExpr(e.X, fn)
	for _, a := range e.Args {
		walkExpr(a, fn)
	}
	for _, k := range e.Keywords {
		walkExpr(k.Value, fn)
	}
}

// short returns the text on one line, cut to 60 characters.
func short(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > 60 {
		return string(runes[:59]) + "…"
	}
	return s
}

// Report counts the translated parts, and lists the remaining ones.
type Report struct {
	Decorators, Translated int // decorators in all, and those without anything left
	Keywords, Kept         int // keyword arguments of decorators
	Arguments, Mapped      int // arguments of functions
	Settings, Set          int
	Statements, Idioms     int // statements in the bodies of handlers, and those with Go code
	Bodies, Whole          int // functions, and those that are translated as a whole
	Left, Notes            []string
}

func (r *Report) left(m *module, line int, format string, args ...any) {
	r.Left = append(r.Left, fmt.Sprintf("`%s:%d`: %s", m.name, line, fmt.Sprintf(format, args...)))
}

func (r *Report) note(m *module, line int, format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf("`%s:%d`: %s", m.name, line, fmt.Sprintf(format, args...)))
}

// expanded replaces *NAME and **NAME by the constants that they stand for.
func (o *operator) expanded(m *module, call *python.Expr) *python.Expr {
	c := *call
	c.Args, c.Keywords = nil, nil
	for _, a := range call.Args {
		if a.Kind == python.Starred {
			if found, in := o.lookup(m, a.X); found != nil && in == m && (found.Kind == python.Tuple || found.Kind == python.List) {
				c.Args = append(c.Args, found.Args...)
				continue
			}
		}
		c.Args = append(c.Args, a)
	}
	for _, k := range call.Keywords {
		found := k.Value
		if k.Name == "" && found.Kind != python.Dict {
			var in *module
			if found, in = o.lookup(m, k.Value); in != m {
				found = nil
			}
		}
		if k.Name != "" || found == nil || found.Kind != python.Dict {
			c.Keywords = append(c.Keywords, k)
			continue
		}
		for i := 0; i+1 < len(found.Args); i += 2 {
			key := found.Args[i]
			if key == nil || key.Kind != python.String {
				c.Keywords = append(c.Keywords, python.Keyword{Name: "", Value: found.Args[i+1]})
				continue
			}
			c.Keywords = append(c.Keywords, python.Keyword{Name: key.Value, Value: found.Args[i+1]})
		}
	}
	return &c
}
