package migrate

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// imports are the packages of the skeleton by their names.
var imports = map[string]string{
	"cmp": "cmp", "context": "context", "errors": "errors", "fmt": "fmt", "slog": "log/slog", "os": "os", "synctest": "testing/synctest", "sync": "sync", "testing": "testing", "time": "time",
	"admissionv1": "k8s.io/api/admission/v1", "metav1": "k8s.io/apimachinery/pkg/apis/meta/v1", "unstructured": "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured",
	"gopf": "gopf.dev/gopf", "cli": "gopf.dev/gopf/cli", "gopftest": "gopf.dev/gopf/gopftest", "hierarchy": "gopf.dev/gopf/hierarchy",
	"kind": "gopf.dev/gopf/kind", "storage": "gopf.dev/gopf/storage", "webhook": "gopf.dev/gopf/webhook",
}

// goFile returns a formatted Go file with the imports that its code needs.
func goFile(comment, code string) ([]byte, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), "", "package main\n"+code, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("the generated code is malformed: %w", err)
	}
	used := map[string]bool{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && imports[x.Name] != "" {
				used[x.Name] = true
			}
		}
		return true
	})
	groups := make([][]string, 3)
	for _, name := range slices.Sorted(maps.Keys(used)) {
		path, group := imports[name], 0
		switch {
		case strings.HasPrefix(path, "gopf.dev/"):
			group = 2
		case strings.Contains(path, "."):
			group = 1
		}
		line := strconv.Quote(path)
		if path != name && !strings.HasSuffix(path, "/"+name) {
			line = name + " " + line
		}
		groups[group] = append(groups[group], line)
	}
	var b strings.Builder
	b.WriteString(comment + "package main\n\n")
	switch all := slices.Concat(groups...); len(all) {
	case 0:
	case 1:
		b.WriteString("import " + all[0] + "\n\n")
	default:
		b.WriteString("import (\n")
		for _, g := range groups {
			b.WriteString(strings.Join(g, "\n") + "\n\n")
		}
		b.WriteString(")\n\n")
	}
	b.WriteString(code)
	return format.Source([]byte(b.String()))
}

// write writes all files.
func (o *operator) write() (*Result, error) {
	r := &Result{Files: map[string][]byte{}, Report: o.report}
	handlers, err := o.functions()
	if err != nil {
		return nil, err
	}
	maps.Copy(r.Files, handlers)
	declarations := o.declarations()
	if r.Files["operator.go"], err = goFile("", declarations); err != nil {
		return nil, err
	}
	main := "// Command " + o.name + " is a Kubernetes operator, migrated from Kopf.\n"
	if r.Files["main.go"], err = goFile(main, "func main() { cli.Main(newOperator()) }\n"); err != nil {
		return nil, err
	}
	if r.Files["takeover_test.go"], err = goFile("", o.takeover()); err != nil {
		return nil, err
	}
	r.Files["MIGRATION.md"] = []byte(o.page())
	return r, nil
}

// reasons are the decorators that can be joined in one declaration.
var reasons = map[string]string{"create": "Create", "update": "Update", "delete": "Delete", "resume": "Resume"}

// declaration is a Go statement for one or more decorators.
type declaration struct {
	first   *handler
	reasons []string
	all     []*handler
}

// joined groups the decorators of a function that differ only in their reasons.
func (o *operator) joined() (all []*declaration) {
	for _, h := range o.handlers {
		if reasons[h.decorator] != "" && !h.blocked {
			at := slices.IndexFunc(all, func(d *declaration) bool {
				f := d.first
				return f.fn == h.fn && reasons[f.decorator] != "" && !f.blocked && f.stored() == h.stored() && f.resource.code == h.resource.code &&
					slices.Equal(f.filters, h.filters) && slices.Equal(f.options, h.options) && !slices.Contains(d.reasons, reasons[h.decorator])
			})
			if at >= 0 {
				all[at].reasons = append(all[at].reasons, reasons[h.decorator])
				all[at].all = append(all[at].all, h)
				continue
			}
		}
		d := &declaration{first: h, all: []*handler{h}}
		if r := reasons[h.decorator]; r != "" {
			d.reasons = []string{r}
		}
		all = append(all, d)
	}
	return all
}

// covers returns the reasons for which a declaration calls its function.
func (d *declaration) covers() []string {
	if d.first.decorator == "field" {
		return []string{"Create", "Update", "Delete", "Resume"}
	}
	return d.reasons
}

// overlaps reports whether both declarations have the same id for the same cause, which Gopf
// refuses. For one function, Kopf calls it once; two functions would share a record.
func (d *declaration) overlaps(other *declaration) bool {
	a, b := d.first, other.first
	if a.stored() != b.stored() || a.resource.code != b.resource.code || a.label != b.label || a.decorator != b.decorator && a.label == "review" {
		return false
	}
	if a.label != "change" {
		return true
	}
	return slices.ContainsFunc(d.covers(), func(r string) bool { return slices.Contains(other.covers(), r) })
}

// declarations returns the file with the operator.
func (o *operator) declarations() string {
	var b strings.Builder
	b.WriteString(`// newOperator declares the operator and its handlers. Handler ids are those of the Python
// operator: the state of objects is stored under them. Without an identity, the operator uses
// the names of Kopf, so it continues the work of the Python operator, and the other way round.
func newOperator() *gopf.Operator {
	op := gopf.New()
`)
	for _, s := range o.settings {
		b.WriteString("\t" + s + "\n")
	}
	handles := map[string]string{}
	var done []*declaration
	for _, d := range o.joined() {
		h := d.first
		if h.fn.gos[h.label] == "" {
			continue // its statements are settings
		}
		for _, t := range h.todo {
			b.WriteString("\t// TODO: " + h.where() + ": " + oneLine(t) + "\n")
		}
		prefix := ""
		if h.blocked {
			prefix = "// "
		}
		if !h.blocked && slices.ContainsFunc(done, d.overlaps) {
			prefix = "// "
			b.WriteString("\t// TODO: " + h.where() + ": the id " + strconv.Quote(h.stored()) + " is declared above for the same reason. Join both filters with gopf.AnyOf or When.\n")
			o.report.left(h.fn.module, h.line, "the id %q is declared twice for one reason: join the filters of both", h.stored())
			o.report.Translated -= len(d.all)
		} else if !h.blocked {
			done = append(done, d)
		}
		handle := handles[h.resource.code]
		if handle == "" && h.resource.code != "" && prefix == "" {
			handle = o.unique(h.resource.variable)
			handles[h.resource.code] = handle
			b.WriteString("\n\t" + handle + " := " + h.resource.code + "\n")
		}
		if handle == "" {
			handle = cmp.Or(h.resource.variable, "objects")
		}
		b.WriteString("\t" + prefix + o.declare(d, handle) + "\n")
	}
	b.WriteString("\treturn op\n}\n")
	return b.String()
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// declare returns the statement of a declaration.
func (o *operator) declare(d *declaration, handle string) string {
	h := d.first
	id, fn := strconv.Quote(h.id), h.fn.gos[h.label]
	with := handle + strings.Join(h.filters, "")
	args := func(before ...string) string { return "(" + strings.Join(append(before, h.options...), ", ") + ")" }
	switch h.label {
	case "activity", "login", "probe":
		return "op.On" + strings.ToUpper(h.decorator[:1]) + h.decorator[1:] + args(id, fn)
	case "event":
		return with + ".OnEvent" + args(id, fn)
	case "daemon":
		return with + ".Daemon" + args(id, fn)
	case "timer":
		return with + ".Timer" + args(id, h.every, fn)
	case "index":
		return "gopf.Index" + args(with, id, fn)
	case "review":
		return with + "." + strings.ToUpper(h.decorator[:1]) + h.decorator[1:] + args(id, fn)
	}
	switch {
	case h.decorator == "field" && len(h.filters) == 1 && h.filters[0] == ".Field("+strconv.Quote(h.field)+")":
		return handle + ".OnField" + args(id, strconv.Quote(h.field), fn)
	case h.decorator == "field":
		return with + ".OnChange" + args(id, fn)
	case len(d.reasons) == 1:
		return with + ".On" + d.reasons[0] + args(id, fn)
	}
	order := []string{}
	for _, r := range []string{"Create", "Update", "Resume", "Delete"} {
		if slices.Contains(d.reasons, r) {
			order = append(order, "gopf."+r)
		}
	}
	return with + ".On" + args(strings.Join(order, "|"), id, fn)
}
