// Package migrate writes the skeleton of a Go operator from the Python sources of a Kopf
// operator: declarations with the same handler ids, filters, options and settings, functions
// with the Python code as comments, a test of the takeover, and a report of the remaining work.
//
// It does not guess. Code that it cannot translate with certainty stays a comment, is counted,
// and fails when it is called: an untranslated handler is retried, and never counts as done.
package migrate

import (
	"fmt"
	"path"
	"strings"

	"gopf.dev/gopf/internal/dev/python"
)

// Source is a Python file.
type Source struct{ Name, Text string }

// Result is the skeleton.
type Result struct {
	Files  map[string][]byte // by name; Go files are formatted
	Report *Report
}

// Kopf reads Python sources and writes the skeleton of package main. The error names the
// files with syntax errors; there is no result then.
func Kopf(sources []Source, name string) (*Result, error) {
	o := &operator{name: name, report: &Report{}, taken: map[string]bool{}, modules: map[string]*module{}, helpers: map[string]bool{}}
	var problems []string
	for _, s := range sources {
		file, err := python.Parse(s.Text)
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", s.Name, err))
			continue
		}
		m := &module{name: s.Name, file: file, imports: map[string]string{}, values: map[string]*python.Expr{}}
		o.all = append(o.all, m)
		o.modules[strings.TrimSuffix(path.Base(strings.ReplaceAll(s.Name, "\\", "/")), ".py")] = m
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("%s", strings.Join(problems, "\n"))
	}
	for _, m := range o.all {
		m.learn(m.file.Body, "")
	}
	for _, m := range o.all {
		o.read(m, m.file.Body, scope{})
	}
	if len(o.handlers) == 0 && len(o.settings) == 0 {
		return nil, fmt.Errorf("there are no Kopf handlers in %s; name the files with decorators such as @kopf.on.create", names(sources))
	}
	if len(o.handlers) > maxHandlers {
		return nil, fmt.Errorf("there are %d handlers, which is more than one operator can have here; give fewer files", len(o.handlers))
	}
	return o.write()
}

// maxHandlers limits the time for generated input.
const maxHandlers = 2000

func names(sources []Source) string {
	var all []string
	for _, s := range sources {
		all = append(all, s.Name)
	}
	return strings.Join(all, ", ")
}

// operator has the declarations of all sources.
type operator struct {
	name      string
	all       []*module
	modules   map[string]*module
	handlers  []*handler
	settings  []string // Go statements
	prefix    string   // of the records in annotations; empty means Kopf's
	elsewhere bool     // the state is not only in annotations
	report    *Report
	taken     map[string]bool // Go names
	helpers   map[string]bool // Go functions that the skeleton needs
	stubs     []stub
	funcs     []*function
}

// module is a source file with the names that it defines.
type module struct {
	name    string
	file    *python.File
	imports map[string]string       // local name → dotted name
	values  map[string]*python.Expr // constants, also of classes: "Config.GROUP"
}

// function is a Python function with handlers.
type function struct {
	module *module
	stmt   *python.Stmt
	name   string            // qualified
	gos    map[string]string // Go names by family
}

// handler is one decorator of a function.
type handler struct {
	fn        *function
	decorator string // "create", "timer", …
	id        string // without the field
	field     string
	resource  resource
	filters   []string
	options   []string
	every     string
	label     string // of the Go argument: the family
	line      int
	todo      []string // parts that are not translated
	blocked   bool     // without these parts, the handler must not be declared
}

// families are the Go arguments of handlers.
var families = map[string]string{
	"create": "change", "update": "change", "delete": "change", "resume": "change", "field": "change",
	"event": "event", "daemon": "daemon", "timer": "timer", "index": "index", "validate": "review", "mutate": "review",
	"startup": "activity", "cleanup": "activity", "login": "login", "probe": "probe",
}

func (h *handler) where() string { return fmt.Sprintf("%s:%d", h.fn.module.name, h.line) }

func (h *handler) block(why string) {
	h.todo = append(h.todo, why)
	h.blocked = true
}

// stored returns the id as it is in the records on objects.
func (h *handler) stored() string {
	if h.field == "" || h.decorator == "index" {
		return h.id
	}
	return h.id + "/" + h.field
}

// learn records imports and constants.
func (m *module) learn(body []*python.Stmt, class string) {
	for _, s := range body {
		switch s.Kind {
		case python.Import:
			for _, i := range s.Imports {
				m.imports[i.As] = strings.Trim(strings.TrimLeft(i.Module, ".")+"."+i.Member, ".")
			}
		case python.Assign:
			for _, t := range s.Targets {
				if t.Kind != python.Name {
					continue
				}
				name := class + t.Value
				if _, again := m.values[name]; again {
					m.values[name] = &python.Expr{} // it is not a constant
					continue
				}
				m.values[name] = s.Value
			}
		case python.Block:
			m.learn(s.Body, class)
		case python.Class:
			m.learn(s.Body, class+s.Name+".")
		}
	}
}

// canonical returns the dotted name of an expression, with the names of imports replaced by
// their full names: "k.on.create" after "import kopf as k" is "kopf.on.create".
func (m *module) canonical(e *python.Expr) string {
	dotted, ok := e.Dotted()
	if !ok {
		return ""
	}
	first, rest, more := strings.Cut(dotted, ".")
	imported, ok := m.imports[first]
	switch {
	case ok && more:
		return imported + "." + rest
	case ok:
		return imported
	case first == "kopf": // imported in a way that is not seen
		return dotted
	}
	return ""
}

// kopf returns the name of a member of the module kopf, such as "on.create". It accepts names
// in internal modules of Kopf.
func (m *module) kopf(e *python.Expr) (string, bool) {
	name := m.canonical(e)
	for _, prefix := range []string{"kopf._cogs.", "kopf._core.", "kopf._kits.", "kopf.structs.", "kopf.utilities."} {
		if strings.HasPrefix(name, prefix) {
			return name[strings.LastIndex(name, ".")+1:], true
		}
	}
	return strings.CutPrefix(name, "kopf.")
}
