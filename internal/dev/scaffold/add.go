package scaffold

import (
	"bytes"
	"embed"
	"fmt"
	"go/ast"
	"go/format"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"text/template"
	"time"
	"unicode"
)

//go:embed template
var templates embed.FS

// Handler is a handler to add.
type Handler struct {
	Type  string // "create", "update", "delete", "resume", "field", "event", "timer", "daemon", "validate", "mutate" or "reconcile"
	Name  string // the id, such as "resize" or "nightly-backup"
	Kind  string // empty means the only kind of the package
	Field string // only for the type "field"
	Every time.Duration
}

// data has the values for the templates of a handler.
type data struct {
	Package, Gopf, Kind, Func, Test, ID, Reason, Field string
	Group, Version, Plural, What                       string
}

var ids = regexp.MustCompile(`^[A-Za-z][-A-Za-z0-9_]{0,60}$`)

// Types are the types of handlers.
var Types = []string{"create", "update", "delete", "resume", "field", "event", "timer", "daemon", "validate", "mutate", "reconcile"}

// AddHandler returns the change that adds a handler with its test.
func (p *Package) AddHandler(h Handler) (*Change, error) {
	if !ids.MatchString(h.Name) || strings.HasSuffix(h.Name, "-") || strings.HasSuffix(h.Name, "_") {
		return nil, fmt.Errorf("%q is not a valid name for a handler; use letters, digits and -, and begin with a letter", h.Name)
	}
	on, err := p.of(h.Kind)
	if err != nil {
		return nil, err
	}
	if at, ok := on.ids[h.Name]; ok {
		return nil, fmt.Errorf("a handler with the id %q exists already: %s; choose another name", h.Name, at)
	}
	d := data{Package: p.name, Gopf: on.file.gopf, Kind: on.kind, Func: goName(h.Name), ID: h.Name, Field: h.Field}
	d.Test = strings.ToUpper(d.Func[:1]) + d.Func[1:]
	for _, name := range []string{d.Func, "Test" + d.Test} {
		if at, ok := p.names[name]; ok {
			return nil, fmt.Errorf("the name %s is taken: %s; choose another name for the handler", name, at)
		}
	}
	if d.Group, d.Version, d.Plural, err = p.resource(on); err != nil {
		return nil, err
	}
	template, method, args := h.declaration(&d)
	target := on.variable
	if target == "" {
		target = fmt.Sprintf("%s.For[*%s](%s, %s)", on.file.gopf, on.kind, on.operator, on.resource)
	}
	return p.change(on, template, d, fmt.Sprintf("%s.%s(%s)", target, method, args))
}

// declaration returns the template of a handler, and the call that declares it.
func (h Handler) declaration(d *data) (template, method, args string) {
	id := strconv.Quote(h.Name)
	reasons := map[string][2]string{
		"create": {"Create", "was created"}, "update": {"Update", "was changed"}, "delete": {"Delete", "is being deleted"}, "resume": {"Resume", "exists at the start of the operator"},
	}
	if r, ok := reasons[h.Type]; ok {
		d.Reason, d.What = r[0], r[1]
		return "change", "On" + r[0], id + ", " + d.Func
	}
	switch h.Type {
	case "field":
		d.Reason = "Update"
		return "field", "OnField", id + ", " + strconv.Quote(h.Field) + ", " + d.Func
	case "event":
		return "event", "OnEvent", id + ", " + d.Func
	case "timer":
		// The file of the declaration may not import time, so the interval is in the new file.
		d.What = interval(h.Every)
		return "timer", "Timer", id + ", " + d.Func + "Interval, " + d.Func
	case "daemon":
		return "daemon", "Daemon", id + ", " + d.Func
	case "validate", "mutate":
		return h.Type, strings.ToUpper(h.Type[:1]) + h.Type[1:], id + ", " + d.Func
	}
	return "reconcile", "Reconcile", id + ", " + d.Func + ", " + d.Func + "Children()"
}

// interval returns the Go expression of a duration.
func interval(d time.Duration) string {
	for _, unit := range []struct {
		is   time.Duration
		name string
	}{{time.Hour, "time.Hour"}, {time.Minute, "time.Minute"}, {time.Second, "time.Second"}} {
		if d%unit.is == 0 {
			if d == unit.is {
				return unit.name
			}
			return strconv.FormatInt(int64(d/unit.is), 10) + " * " + unit.name
		}
	}
	return strconv.FormatInt(d.Milliseconds(), 10) + " * time.Millisecond"
}

// resource returns the parts of the name that the handle has.
func (p *Package) resource(h *handle) (group, version, plural string, err error) {
	name, ok := p.consts[h.resource]
	if !ok {
		if name, err = strconv.Unquote(h.resource); err != nil {
			return "", "", "", fmt.Errorf("%s: the name of the resource, %s, is not a constant of this package; the test needs one, so declare it", h.position(), h.resource)
		}
	}
	parts := strings.Split(name, "/")
	if len(parts) != 3 {
		return "", "", "", fmt.Errorf("%s: the resource %q has no group or no version; write it as group/version/plural", h.position(), name)
	}
	return parts[0], parts[1], parts[2], nil
}

func (h *handle) position() token.Position { return h.file.fset.Position(h.after.Pos()) }

// change renders the files of a handler and inserts its line.
func (p *Package) change(on *handle, name string, d data, line string) (*Change, error) {
	base := fileName(d.Func)
	c := &Change{dir: p.dir, New: map[string][]byte{}, Changed: on.file.name, before: on.file.src, Line: line}
	for _, f := range [][2]string{{name + ".go.tmpl", base + ".go"}, {name + "_test.go.tmpl", base + "_test.go"}} {
		if p.exists(f[1]) {
			return nil, fmt.Errorf("the file %s exists already; choose another name, or move its content", f[1])
		}
		code, err := render(f[0], d)
		if err != nil {
			return nil, err
		}
		c.New[f[1]] = code
	}
	var err error
	c.content, err = on.file.insert(on.after, line)
	return c, err
}

func render(name string, d any) ([]byte, error) {
	t, err := template.New(name).Delims("[[", "]]").Option("missingkey=error").ParseFS(templates, "template/"+name)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, d); err != nil {
		return nil, err
	}
	code, err := format.Source(b.Bytes())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return code, nil
}

// goName returns the name of the function for an id: "nightly-backup" becomes "nightlyBackup".
func goName(id string) string {
	var b strings.Builder
	upper := false
	for _, c := range id {
		switch {
		case c == '-' || c == '_':
			upper = true
		case upper:
			b.WriteRune(unicode.ToUpper(c))
			upper = false
		default:
			b.WriteRune(c)
		}
	}
	name := strings.ToLower(b.String()[:1]) + b.String()[1:]
	if token.IsKeyword(name) || predeclared[name] {
		return name + "Object"
	}
	return name
}

var predeclared = map[string]bool{"delete": true, "init": true, "main": true, "new": true, "copy": true, "close": true, "clear": true, "print": true, "panic": true, "len": true, "cap": true, "make": true, "min": true, "max": true, "any": true, "error": true, "string": true, "time": true, "context": true}

// fileName returns the name of a file: "nightlyBackup" becomes "nightly_backup". A name that
// Go would treat as a test or as bound to a platform gets a suffix.
func fileName(name string) string {
	var b strings.Builder
	for i, c := range name {
		if unicode.IsUpper(c) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	last := b.String()[strings.LastIndex(b.String(), "_")+1:]
	if platforms[last] {
		b.WriteString("_handler")
	}
	return b.String()
}

var platforms = map[string]bool{
	"test": true, "linux": true, "windows": true, "darwin": true, "freebsd": true, "openbsd": true, "netbsd": true, "android": true, "ios": true, "js": true, "wasm": true, "wasip1": true, "plan9": true, "aix": true,
	"illumos": true, "solaris": true, "dragonfly": true, "amd64": true, "arm": true, "arm64": true, "386": true, "ppc64": true, "ppc64le": true, "mips": true, "riscv64": true, "s390x": true, "loong64": true,
}

// Kind is a kind to add.
type Kind struct{ Name, Group, Version, Plural string }

var kindNames = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

// Group returns the API group of the first kind of the package, or "".
func (p *Package) Group() string {
	for _, h := range p.handles {
		if group, _, _, err := p.resource(h); err == nil {
			return group
		}
	}
	return ""
}

// AddKind returns the change that adds a kind with its type, a first handler and its test.
func (p *Package) AddKind(k Kind) (*Change, error) {
	if !kindNames.MatchString(k.Name) {
		return nil, fmt.Errorf("%q is not a valid kind; use letters and digits, and begin with a capital letter", k.Name)
	}
	lower := strings.ToLower(k.Name[:1]) + k.Name[1:]
	d := map[string]string{
		"Package": p.name, "Kind": k.Name, "Group": k.Group, "Version": k.Version, "Plural": k.Plural, "Const": lower + "Resource", "Func": "observe" + k.Name, "Variable": lower + "s",
	}
	for _, name := range []string{k.Name, k.Name + "Spec", k.Name + "Status", d["Const"], d["Func"]} {
		if at, ok := p.names[name]; ok {
			return nil, fmt.Errorf("the name %s is taken: %s; choose another kind", name, at)
		}
	}
	f, op, after, err := p.operator()
	if err != nil {
		return nil, err
	}
	line := fmt.Sprintf(`%s.For[*%s](%s, %s).On(%s.Create|%s.Update, "observe", %s)`, f.gopf, k.Name, op, d["Const"], f.gopf, f.gopf, d["Func"])
	c := &Change{dir: p.dir, New: map[string][]byte{}, Changed: f.name, before: f.src, Line: line}
	base := fileName(lower)
	for _, t := range [][2]string{{"kind.go.tmpl", base + ".go"}, {"kind_test.go.tmpl", base + "_test.go"}} {
		if p.exists(t[1]) {
			return nil, fmt.Errorf("the file %s exists already; choose another kind, or move its content", t[1])
		}
		if c.New[t[1]], err = render(t[0], d); err != nil {
			return nil, err
		}
	}
	c.content, err = f.insert(after, line)
	return c, err
}

// operator returns the function that declares handlers: the variable of the operator, and
// the statement after which new ones belong.
func (p *Package) operator() (f *file, op string, after ast.Stmt, err error) {
	for _, f := range p.files {
		if f.gopf == "" {
			continue
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			op, after := f.operatorOf(fn)
			for _, h := range p.handles {
				if h.file == f && h.operator == op && h.after.Pos() > fn.Pos() && h.after.End() < fn.End() && (after == nil || h.after.Pos() > after.Pos()) {
					after = h.after
				}
			}
			if op != "" && after != nil {
				return f, op, after, nil
			}
		}
	}
	return nil, "", nil, fmt.Errorf("no function of this package declares handlers of a *gopf.Operator; create one first, as in 'op := gopf.New()'")
}

// operatorOf returns the variable of the operator in a function: a parameter, or the result
// of gopf.New with its statement.
func (f *file) operatorOf(fn *ast.FuncDecl) (string, ast.Stmt) {
	for _, p := range fn.Type.Params.List {
		if star, ok := p.Type.(*ast.StarExpr); ok && isSelector(star.X, f.gopf, "Operator") && len(p.Names) > 0 && p.Names[0].Name != "_" {
			return p.Names[0].Name, nil
		}
	}
	for _, s := range fn.Body.List {
		a, ok := s.(*ast.AssignStmt)
		if !ok || len(a.Lhs) != 1 || len(a.Rhs) != 1 {
			continue
		}
		call, ok := a.Rhs[0].(*ast.CallExpr)
		name, isName := a.Lhs[0].(*ast.Ident)
		if ok && isName && isSelector(call.Fun, f.gopf, "New") {
			return name.Name, s
		}
	}
	return "", nil
}
