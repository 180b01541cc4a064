package migrate

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"gopf.dev/gopf/internal/dev/python"
)

// signatures are the parameters and results of handlers by family.
var signatures = map[string]string{
	"change":   "(ctx context.Context, c *gopf.Change[gopf.Unstructured]) error",
	"event":    "(ctx context.Context, e *gopf.WatchEvent[gopf.Unstructured]) error",
	"daemon":   "(ctx context.Context, d *gopf.Daemon[gopf.Unstructured]) error",
	"timer":    "(ctx context.Context, t *gopf.Tick[gopf.Unstructured]) error",
	"review":   "(ctx context.Context, r *gopf.Review[gopf.Unstructured]) error",
	"index":    "(ctx context.Context, s *gopf.Subject[gopf.Unstructured]) (map[string]any, error)",
	"activity": "(ctx context.Context, a *gopf.Activity) error",
	"login":    "(ctx context.Context, a *gopf.Activity) (*gopf.Login, error)",
	"probe":    "(ctx context.Context, a *gopf.Activity) (any, error)",
}

// functions returns the Go files with the handlers, one for each Python file.
func (o *operator) functions() (map[string][]byte, error) {
	code := map[*module]*strings.Builder{}
	for _, f := range o.funcs {
		labels := []string{}
		for _, h := range o.handlers {
			if h.fn == f && !slices.Contains(labels, h.label) {
				labels = append(labels, h.label)
			}
		}
		b := code[f.module]
		if b == nil {
			b = &strings.Builder{}
			code[f.module] = b
		}
		for _, label := range labels {
			o.one(b, f, label)
		}
	}
	files := map[string][]byte{}
	for i, m := range o.all {
		b := code[m]
		if b == nil || b.Len() == 0 {
			continue
		}
		base := strings.ToLower(identifier(strings.TrimSuffix(path.Base(strings.ReplaceAll(m.name, "\\", "/")), ".py")))
		name := "handlers_" + base + "_py.go"
		if files[name] != nil {
			name = fmt.Sprintf("handlers_%s%d_py.go", base, i)
		}
		content, err := goFile("", b.String())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		files[name] = content
	}
	if helpers := o.helperCode(); helpers != "" {
		content, err := goFile("", helpers)
		if err != nil {
			return nil, err
		}
		files["python.go"] = content
	}
	return files, nil
}

// one writes one Go function. A startup handler that only has settings needs none.
func (o *operator) one(b *strings.Builder, f *function, label string) {
	body := f.stmt.Body
	if label == "activity" {
		body = o.settingsOf(f)
		if len(withoutDocstring(body)) == 0 && len(f.stmt.Body) > 0 && len(body) < len(f.stmt.Body) {
			return
		}
	}
	if label == "login" && o.defaultLogin(f) {
		return
	}
	parts := strings.Split(f.name, ".")
	name := o.unique(identifier(parts[len(parts)-1]))
	f.gos[label] = name
	o.report.Bodies++
	t := o.envOf(f, label)
	lines, ends, ok := t.statements(withoutDocstring(body), 0)
	for _, uses := range t.locals {
		ok = ok && uses > 0
	}
	fmt.Fprintf(b, "// %s is %s of %s, line %d.\nfunc %s%s {\n", name, f.name, f.module.name, f.stmt.Line, name, signatures[label])
	o.membersOf(b, f, label)
	o.python(b, f, label, ok)
	if !ok {
		o.helpers["notTranslated"] = true
		o.report.left(f.module, f.stmt.Line, "translate the body of %s: see the function %s", f.name, name)
		fmt.Fprintf(b, "\t%s\n}\n\n", t.result("notTranslated("+strconv.Quote(f.name)+")"))
		return
	}
	o.report.Whole++
	for _, l := range lines {
		b.WriteString("\t" + l + "\n")
	}
	if !ends {
		b.WriteString("\t" + t.result("nil") + "\n")
	}
	b.WriteString("}\n\n")
}

// defaultLogin reports whether a login handler only uses a client library of Python, which
// the default login of Gopf replaces.
func (o *operator) defaultLogin(f *function) bool {
	body := withoutDocstring(f.stmt.Body)
	if len(body) != 1 || body[0].Kind != python.Return || body[0].Value == nil || body[0].Value.Kind != python.Call {
		return false
	}
	name, _ := f.module.kopf(body[0].Value.X)
	if !strings.HasPrefix(name, "login_via_") {
		return false
	}
	o.report.note(f.module, f.stmt.Line, "the login handler %s is not needed: kubeconfigs and service accounts are the default", f.name)
	return true
}

// membersOf writes a comment about the Go counterparts of the arguments.
func (o *operator) membersOf(b *strings.Builder, f *function, label string) {
	v := variables[label]
	for _, p := range f.stmt.Params {
		name := strings.TrimLeft(p.Name, "*")
		if m, ok := members[name]; ok && !strings.HasPrefix(p.Name, "*") {
			fmt.Fprintf(b, "\t// %s: %s\n", name, strings.ReplaceAll(m, "%s", v))
		}
	}
}

// python writes the Python code of the function as a comment. If the function is not
// translated as a whole, Go code for single statements is added to it.
func (o *operator) python(b *strings.Builder, f *function, label string, whole bool) {
	suggested := map[int][]string{}
	o.suggest(f, label, f.stmt.Body, suggested, whole, 0)
	b.WriteString("\t//\n")
	lines := f.module.file.Lines
	indent := ""
	for n := f.stmt.Line; n <= f.stmt.End && n <= len(lines); n++ {
		line := strings.TrimRight(strings.NewReplacer("\r", "", "\ufeff", "", "\f", "", "\v", "").Replace(lines[n-1]), " \t")
		if n == f.stmt.Line {
			indent = line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		}
		line = strings.TrimPrefix(line, indent)
		b.WriteString(strings.TrimRight("\t// | "+line, " ") + "\n")
		for _, s := range suggested[n] {
			b.WriteString("\t//\t→ " + s + "\n")
		}
	}
}

// suggest translates single statements, and counts them.
func (o *operator) suggest(f *function, label string, body []*python.Stmt, by map[int][]string, whole bool, depth int) {
	if depth > maxDepth {
		return
	}
	for _, s := range withoutDocstring(body) {
		if s.Kind == python.Block || s.Kind == python.Def || s.Kind == python.Class {
			if s.Kind == python.Def {
				o.subhandler(f, label, s, by)
			}
			if s.Kind == python.Block {
				o.report.Statements++
				if whole {
					o.report.Idioms++
				}
			}
			o.suggest(f, label, s.Body, by, whole, depth+1)
			continue
		}
		o.report.Statements++
		t := o.loose(f, label)
		used := maps.Clone(o.helpers)
		code, ok := t.statement(s)
		o.helpers = used // Go code in comments needs no functions
		if label == "activity" && s.Kind == python.Assign {
			dotted, _ := s.Targets[0].Dotted()
			ok = ok || strings.HasPrefix(dotted, "settings.")
		}
		if ok || whole {
			o.report.Idioms++
		}
		if whole || !ok {
			continue
		}
		by[s.End] = append(by[s.End], code...)
	}
}

// subhandler notes the id of a sub-handler.
func (o *operator) subhandler(f *function, label string, s *python.Stmt, by map[int][]string) {
	for _, d := range s.Decorators {
		name, call, ok := o.decorator(f.module, d)
		if !ok || name != "subhandler" || label != "change" {
			continue
		}
		id := constant(f.name + ".<locals>." + s.Name)
		if call != nil {
			for _, k := range call.Keywords {
				if k.Name != "id" {
					continue
				}
				t, ok := o.text(f.module, k.Value, 0)
				if !ok {
					t = text{code: "…"}
					if code, _, ok := o.loose(f, label).value(k.Value, 0); ok {
						t.code = code
					}
				}
				id = t
			}
		}
		by[s.End] = append(by[s.End], "c.Sub("+id.code+", "+identifier(s.Name)+")")
		o.report.note(f.module, s.Line, "the sub-handler %s of %s: declare it with c.Sub(%s, …)", s.Name, f.name, id.code)
	}
}

// envOf returns the env of a function.
func (o *operator) envOf(f *function, label string) *env {
	t := o.env(f.module, label, f.stmt.Params)
	t.ofField = label == "change"
	for _, h := range o.handlers {
		t.ofField = t.ofField && (h.fn != f || h.label != label || h.field != "")
	}
	return t
}

func (o *operator) loose(f *function, label string) *env {
	t := o.envOf(f, label)
	t.loose = true
	return t
}

// helperCode returns the functions that the translated code needs, and the filters.
func (o *operator) helperCode() string {
	var b strings.Builder
	if o.helpers["notTranslated"] {
		b.WriteString(`// notTranslated is the error of a handler whose code is still in Python. The handler is
// retried, and never counts as done.
func notTranslated(handler string) error {
	return fmt.Errorf("%s is not translated to Go", handler)
}

`)
	}
	if o.helpers["at"] {
		b.WriteString(`// at returns the value under the keys of the object. nil means that there is none.
func at(of interface{ Raw() map[string]any }, keys ...string) any {
	var value any = of.Raw()
	for _, key := range keys {
		fields, _ := value.(map[string]any)
		value = fields[key]
	}
	return value
}

`)
	}
	if o.helpers["first"] {
		b.WriteString(`// first returns a value that may be absent. nil means that it is.
func first(value any, _ bool) any { return value }

`)
	}
	if o.helpers["truthy"] {
		b.WriteString(`// truthy reports whether Python would treat the value as true.
func truthy(value any) bool {
	switch v := value.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case int64:
		return v != 0
	case float64:
		return v != 0
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}

`)
	}
	for _, s := range o.stubs {
		fmt.Fprintf(&b, "// %s is a filter of the Python operator:\n//\n", s.name)
		for _, l := range s.comment {
			b.WriteString(strings.TrimRight("//\t"+strings.NewReplacer("\r", "", "\ufeff", "", "\f", "").Replace(l), " \t") + "\n")
		}
		fmt.Fprintf(&b, "func %s(%s) bool {\n\t%s\n}\n\n", s.name, s.params, s.body)
	}
	return b.String()
}
