package migrate

import (
	"regexp"
	"strconv"
	"strings"

	"gopf.dev/gopf/internal/dev/python"
)

var logLevels = map[string]string{
	"debug": "Debug", "info": "Info", "warning": "Warn", "warn": "Warn", "error": "Error", "exception": "Error", "critical": "Error",
}

// expression translates a statement that is a call.
func (t *env) expression(e *python.Expr) ([]string, bool) {
	switch {
	case e.Kind == python.String || e.Kind == python.Constant:
		return nil, true
	case e.Kind == python.Await:
		return nil, false
	case e.Kind != python.Call:
		return nil, false
	}
	if name, ok := t.m.kopf(e.X); ok {
		return t.kopfCall(name, e)
	}
	name, _ := e.X.Dotted()
	owner, method, _ := strings.Cut(name, ".")
	if level, ok := logLevels[method]; ok && (owner == "logger" || owner == "logging" || owner == "log" || owner == "LOG") {
		return t.logged(level, e)
	}
	if name == "print" && len(e.Args) == 1 && len(e.Keywords) == 0 {
		return t.logged("Info", e)
	}
	if name == "warnings.append" && t.family == "review" && len(e.Args) == 1 && t.params["warnings"] {
		format, args, ok := t.format(e.Args[0], 0)
		return []string{"r.AddWarning(" + strings.Join(append([]string{strconv.Quote(format)}, args...), ", ") + ")"}, ok
	}
	return nil, false
}

var verb = regexp.MustCompile(`%[-0-9.]*[a-zA-Z]`)

// logged translates a log line, with its arguments if there are any.
func (t *env) logged(level string, e *python.Expr) ([]string, bool) {
	if len(e.Args) == 0 {
		return nil, false
	}
	for _, k := range e.Keywords {
		if k.Name != "exc_info" {
			return nil, false
		}
	}
	if len(e.Args) == 1 {
		message, typ, ok := t.value(e.Args[0], 0)
		if typ != typeString {
			message = "fmt.Sprint(" + message + ")"
		}
		return []string{t.v + ".Log." + level + "(" + message + ")"}, ok
	}
	format, ok := t.o.text(t.m, e.Args[0], 0)
	if !ok || !format.constant || len(verb.FindAllString(strings.ReplaceAll(format.is, "%%", ""), -1)) != len(e.Args)-1 {
		return nil, false
	}
	parts := []string{strconv.Quote(verb.ReplaceAllString(format.is, "%v"))}
	for _, a := range e.Args[1:] {
		code, _, ok := t.value(a, 0)
		if !ok {
			return nil, false
		}
		parts = append(parts, code)
	}
	return []string{t.v + ".Log." + level + "(fmt.Sprintf(" + strings.Join(parts, ", ") + "))"}, true
}

// kopfCall translates calls of Kopf's functions: hierarchies and Kubernetes events.
func (t *env) kopfCall(name string, e *python.Expr) ([]string, bool) {
	if t.family == "activity" || t.family == "login" || t.family == "probe" || t.family == "index" || t.family == "when" {
		return nil, false
	}
	if name == "execute" && t.loose && t.family == "change" {
		return []string{"if err := c.RunSubs(ctx); err != nil {", "return err", "}"}, true
	}
	var args []string
	for _, a := range e.Args {
		code, ok := t.argument(a)
		if !ok {
			return nil, false
		}
		args = append(args, code)
	}
	named := map[string]string{}
	for _, k := range e.Keywords {
		code, ok := t.argument(k.Value)
		if !ok || k.Name == "" {
			return nil, false
		}
		named[k.Name] = code
	}
	if strings.HasPrefix(name, "info") || name == "warn" || name == "exception" || name == "event" {
		return t.posted(name, args, named, e)
	}
	if name == "register" && t.loose && t.family == "change" && named["id"] != "" {
		function := named["fn"]
		if len(args) > 0 {
			function = args[0]
		}
		return []string{"c.Sub(" + named["id"] + ", " + function + ")"}, function != ""
	}
	if objs, ok := named["objs"]; ok {
		args = append([]string{objs}, args...)
		delete(named, "objs")
	}
	own := t.v + ".Object"
	owner := own
	if o, ok := named["owner"]; ok {
		owner = o
		delete(named, "owner")
	}
	if len(args) == 0 || len(named) > 0 {
		return nil, false
	}
	var call string
	switch {
	case name == "adopt" && len(args) == 1 && owner == own:
		call = t.v + ".Adopt(" + args[0] + ")"
	case name == "adopt":
		call = "hierarchy.Adopt(" + args[0] + ", " + second(args, owner) + ")"
	case name == "append_owner_reference":
		call = "hierarchy.AppendOwnerReference(" + args[0] + ", " + second(args, owner) + ")"
	case name == "remove_owner_reference":
		call = "hierarchy.RemoveOwnerReference(" + args[0] + ", " + second(args, owner) + ")"
	case name == "harmonize_naming":
		call = "hierarchy.HarmonizeNaming(" + args[0] + ", " + second(args, own+".GetName()") + ")"
	case name == "adjust_namespace":
		call = "hierarchy.AdjustNamespace(" + args[0] + ", " + second(args, own+".GetNamespace()") + ")"
	case name == "label" && len(args) == 2 && t.loose:
		call = "hierarchy.Label(" + args[0] + ", " + args[1] + ")"
	case name == "label" && len(args) == 1:
		call = "hierarchy.Label(" + args[0] + ", " + own + ".GetLabels())"
	default:
		return nil, false
	}
	return []string{"if err := " + call + "; err != nil {", "return err", "}"}, true
}

// argument translates an argument of a function of Kopf. The body stands for the object.
func (t *env) argument(e *python.Expr) (string, bool) {
	if e.Kind == python.Name && e.Value == "body" && t.params["body"] {
		return t.v + ".Object", true
	}
	code, _, ok := t.value(e, 0)
	return code, ok
}

func second(args []string, otherwise string) string {
	if len(args) > 1 {
		return args[1]
	}
	return otherwise
}

// posted translates kopf.info(body, reason=…, message=…) and similar functions.
func (t *env) posted(name string, args []string, named map[string]string, e *python.Expr) ([]string, bool) {
	if len(e.Args) == 0 {
		return nil, false
	}
	if target, _ := e.Args[0].Dotted(); target != "body" || !t.params["body"] {
		return nil, false // about another object
	}
	args = args[1:]
	kind := map[string]string{"info": "gopf.Normal", "warn": "gopf.Warning", "exception": "gopf.Failure"}[name]
	take := func(key string) (string, bool) {
		if v, ok := named[key]; ok {
			return v, true
		}
		if len(args) == 0 {
			return "", false
		}
		v := args[0]
		args = args[1:]
		return v, true
	}
	if name == "event" {
		v, ok := take("type")
		kind = map[string]string{`"Normal"`: "gopf.Normal", `"Warning"`: "gopf.Warning", `"Error"`: "gopf.Failure"}[v]
		if !ok || kind == "" {
			return nil, false
		}
	}
	reason, ok := take("reason")
	message, also := take("message")
	if !ok || !also {
		return nil, false
	}
	return []string{t.v + ".Event(" + kind + ", " + reason + `, "%v", ` + message + ")"}, true
}
