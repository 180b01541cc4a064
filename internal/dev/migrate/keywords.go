package migrate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gopf.dev/gopf/internal/dev/python"
)

// arguments translates the arguments of one decorator.
type arguments struct {
	o *operator
	m *module
	h *handler

	value, old, new *python.Expr
}

func (a *arguments) left(format string, args ...any) {
	a.h.todo = append(a.h.todo, fmt.Sprintf(format, args...))
}

// block is for parts without which the handler would be called for other objects, or would
// have another id. Its declaration becomes a comment.
func (a *arguments) block(format string, args ...any) {
	a.left(format, args...)
	a.h.blocked = true
}

// selectors are the keyword arguments that select resources.
var selectors = map[string]string{"kind": "Kind", "plural": "Plural", "singular": "Singular", "shortcut": "ShortName", "category": "Category", "group": "", "version": ""}

// keywords translates the keyword arguments, except those that select resources.
func (a *arguments) keywords(all []python.Keyword) {
	for _, k := range all {
		if _, ok := selectors[k.Name]; ok {
			continue
		}
		a.o.report.Keywords++
		before := len(a.h.todo)
		if k.Name == "" {
			a.block("**%s is not translated", short(k.Value.Source))
		} else if !isNone(k.Value) {
			a.keyword(k.Name, k.Value)
		}
		if len(a.h.todo) == before {
			a.o.report.Kept++
		}
	}
}

// durations, flags: options of one form.
var (
	durations = map[string]string{
		"timeout": "Timeout", "backoff": "Backoff", "initial_delay": "InitialDelay", "idle": "Idle",
		"cancellation_backoff": "StopGrace", "cancellation_timeout": "StopTimeout", "cancellation_polling": "StopPolling",
	}
	flags = map[string]string{
		"optional": "Optional", "deleted": "AlsoDeleted", "sharp": "Sharp", "persistent": "Persistent", "side_effects": "SideEffects", "ignore_failures": "IgnoreFailures",
	}
	errorModes = map[string]string{"IGNORED": "ErrorsIgnored", "TEMPORARY": "ErrorsTemporary", "PERMANENT": "ErrorsPermanent"}
)

func (a *arguments) option(format string, args ...any) {
	a.h.options = append(a.h.options, fmt.Sprintf("gopf."+format, args...))
}

// allowed are the options of handlers by family, besides those that all families have.
var allowed = map[string][]string{
	"change": {"timeout", "backoff", "retries", "errors", "optional", "deleted", "field", "value", "old", "new", "labels", "annotations", "when", "label_selector"},
	"event":  {"field", "value", "labels", "annotations", "when", "label_selector"},
	"daemon": {
		"timeout", "backoff", "retries", "errors", "field", "value", "labels", "annotations", "when", "label_selector",
		"initial_delay", "cancellation_backoff", "cancellation_timeout", "cancellation_polling",
	},
	"timer":    {"timeout", "backoff", "retries", "errors", "field", "value", "labels", "annotations", "when", "label_selector", "initial_delay", "idle", "sharp", "interval"},
	"index":    {"timeout", "backoff", "retries", "errors", "field", "value", "labels", "annotations", "when", "label_selector"},
	"review":   {"field", "value", "labels", "annotations", "when", "operation", "operations", "subresource", "persistent", "side_effects", "ignore_failures"},
	"activity": {"timeout", "backoff", "retries", "errors"},
	"login":    {"timeout", "backoff", "retries", "errors"},
	"probe":    {"timeout", "backoff", "retries", "errors"},
}

func (a *arguments) keyword(name string, e *python.Expr) {
	if name != "id" && name != "param" && name != "registry" && !slices.Contains(allowed[a.h.label], name) {
		a.block("the argument %s= is unknown", name)
		return
	}
	if option, ok := durations[name]; ok {
		if d, ok := a.duration(e); ok {
			a.option("%s(%s)", option, d)
		} else {
			a.left("%s=%s is not translated", name, short(e.Source))
		}
		return
	}
	if option, ok := flags[name]; ok {
		if on, ok := boolean(e); !ok {
			a.left("%s=%s is not translated", name, short(e.Source))
		} else if on {
			a.option("%s()", option)
		}
		return
	}
	switch name {
	case "id":
		if t, ok := a.o.text(a.m, e, 0); ok && t.constant {
			a.h.id = t.is
		} else {
			a.block("the id %s is not a constant", short(e.Source))
		}
	case "interval":
		if d, ok := a.duration(e); ok {
			a.h.every = d
		} else {
			a.block("interval=%s is not translated", short(e.Source))
		}
	case "retries":
		if n, ok := a.o.number(a.m, e, 0); ok {
			a.option("MaxAttempts(%d)", int(n))
		} else {
			a.left("retries=%s is not translated", short(e.Source))
		}
	case "errors":
		mode := e.Source[strings.LastIndex(e.Source, ".")+1:]
		if option, ok := errorModes[mode]; ok {
			a.option("%s()", option)
		} else {
			a.left("errors=%s is not translated", short(e.Source))
		}
	case "labels", "annotations":
		a.metadata(map[string]string{"labels": "Label", "annotations": "Annotation"}[name], e)
	case "when":
		a.filter("When(%s)", a.when(e))
	case "field":
		if path, ok := a.path(e); ok {
			a.h.field = path
		} else {
			a.block("field=%s is not translated: it is part of the id", short(e.Source))
		}
	case "value":
		a.value = e
	case "old":
		a.old = e
	case "new":
		a.new = e
	case "operation", "operations":
		a.operations(e)
	case "subresource":
		if t, ok := a.o.text(a.m, e, 0); ok {
			a.option("Subresource(%s)", t.code)
		} else {
			a.block("subresource=%s is not translated", short(e.Source))
		}
	case "label_selector": // of a fork of Kopf
		if t, ok := a.o.text(a.m, e, 0); ok {
			a.filter("Select(%s)", t.code)
		} else {
			a.block("label_selector=%s is not translated", short(e.Source))
		}
	case "param":
		a.o.report.note(a.m, e.Line, "param=%s of %s is a variable of a closure in Go", short(e.Source), a.h.fn.name)
	case "registry":
		a.o.report.note(a.m, e.Line, "registry=%s: all handlers are declared on one operator; declare another gopf.New() for another registry", short(e.Source))
	default:
		a.block("the argument %s= is unknown", name)
	}
}

func (a *arguments) filter(format string, args ...any) {
	a.h.filters = append(a.h.filters, fmt.Sprintf("."+format, args...))
}

func (a *arguments) duration(e *python.Expr) (string, bool) {
	n, ok := a.o.number(a.m, e, 0)
	if !ok || n < 0 || n > 1e9 {
		return "", false
	}
	return duration(n), true
}

// path translates a field: a dotted text, or a list of keys.
func (a *arguments) path(e *python.Expr) (string, bool) {
	if e.Kind == python.Name || e.Kind == python.Attribute {
		if found, _ := a.o.lookup(a.m, e); found != nil && (found.Kind == python.Tuple || found.Kind == python.List) {
			e = found
		}
	}
	if e.Kind != python.Tuple && e.Kind != python.List {
		t, ok := a.o.text(a.m, e, 0)
		return t.is, ok && t.constant && t.is != ""
	}
	var keys []string
	for _, x := range e.Args {
		t, ok := a.o.text(a.m, x, 0)
		if !ok || !t.constant || strings.ContainsAny(t.is, "./~") {
			return "", false
		}
		keys = append(keys, t.is)
	}
	return strings.Join(keys, "."), len(keys) > 0
}

// metadata translates a filter by labels or annotations.
func (a *arguments) metadata(method string, e *python.Expr) {
	if e.Kind == python.Name || e.Kind == python.Attribute {
		if found, _ := a.o.lookup(a.m, e); found != nil {
			e = found
		}
	}
	if e.Kind != python.Dict {
		a.block("the filter %s is not translated", short(e.Source))
		return
	}
	for i := 0; i+1 < len(e.Args); i += 2 {
		key, ok := a.o.text(a.m, e.Args[i], 0)
		if !ok {
			a.block("a key of the filter %s is not translated", short(e.Source))
			continue
		}
		a.filter("With%s(%s, %s)", method, key.code, a.matcher(e.Args[i+1]))
	}
}

// matcher translates the wanted value of a label, annotation or field.
func (a *arguments) matcher(e *python.Expr) string {
	if name, ok := a.m.kopf(e); ok {
		switch name {
		case "PRESENT":
			return "gopf.Present"
		case "ABSENT":
			return "gopf.Absent"
		}
	}
	if e.Kind == python.Call {
		if name, ok := a.m.kopf(e.X); ok {
			if s, ok := a.combined(name, e); ok {
				return s
			}
		}
	}
	if t, ok := a.o.text(a.m, e, 0); ok {
		return "gopf.Is(" + t.code + ")"
	}
	if n, ok := a.o.number(a.m, e, 0); ok {
		return "gopf.Is(" + strconv.FormatFloat(n, 'f', -1, 64) + ")"
	}
	if v, ok := boolean(e); ok {
		return fmt.Sprintf("gopf.Is(%v)", v)
	}
	if isNone(e) {
		return "gopf.Absent"
	}
	return "gopf.Matching(" + a.stub(e, "value any, present bool", "") + ")"
}

// combined translates kopf.all_([…]) and similar functions of matchers.
func (a *arguments) combined(name string, e *python.Expr) (string, bool) {
	if len(e.Args) != 1 {
		return "", false
	}
	if name == "not_" {
		return "gopf.Not(" + a.matcher(e.Args[0]) + ")", true
	}
	function := map[string]string{"all_": "gopf.AllOf", "any_": "gopf.AnyOf", "none_": "gopf.AnyOf"}[name]
	if function == "" || e.Args[0].Kind != python.List && e.Args[0].Kind != python.Tuple {
		return "", false
	}
	var all []string
	for _, x := range e.Args[0].Args {
		all = append(all, a.matcher(x))
	}
	s := function + "(" + strings.Join(all, ", ") + ")"
	if name == "none_" {
		s = "gopf.Not(" + s + ")"
	}
	return s, true
}

// fieldFilters translates field=, value=, old= and new=.
func (a *arguments) fieldFilters() {
	h := a.h
	if h.field == "" {
		if a.value != nil || a.old != nil || a.new != nil {
			a.block("value=, old= and new= need field=")
		}
		return
	}
	path := strconv.Quote(h.field)
	if h.decorator == "index" {
		m := "gopf.Present"
		if a.value != nil {
			m = a.matcher(a.value)
		}
		a.filter("WithField(%s, %s)", path, m)
		return
	}
	fields := ".Field(" + path + ")"
	switch {
	case a.value != nil:
		fields += ".Value(" + a.matcher(a.value) + ")"
	case a.old != nil || a.new != nil:
		fields += ".Changed(" + a.side(a.old) + ", " + a.side(a.new) + ")"
	}
	h.filters = append(h.filters, fields) // last: the methods of other filters return a plain handle
}

func (a *arguments) side(e *python.Expr) string {
	if e == nil {
		return "gopf.Any"
	}
	return a.matcher(e)
}

func (a *arguments) operations(e *python.Expr) {
	list := []*python.Expr{e}
	if e.Kind == python.List || e.Kind == python.Tuple || e.Kind == python.Set {
		list = e.Args
	}
	known := map[string]string{"CREATE": "Create", "UPDATE": "Update", "DELETE": "Delete", "CONNECT": "Connect"}
	var all []string
	for _, x := range list {
		t, ok := a.o.text(a.m, x, 0)
		if !ok || known[t.is] == "" {
			a.block("the operations %s are not translated", short(e.Source))
			return
		}
		all = append(all, "admissionv1."+known[t.is])
	}
	a.option("Operations(%s)", strings.Join(all, ", "))
}
