package migrate

import (
	"fmt"
	"strconv"
	"strings"

	"gopf.dev/gopf/internal/dev/python"
)

// members are the arguments of Kopf's handlers with their counterparts in Go; %s is the name of the
// Go argument.
var members = map[string]string{
	"logger": "%s.Log", "name": "%s.Object.GetName()", "namespace": "%s.Object.GetNamespace()", "uid": "%s.Object.GetUID()",
	"body": "%s.Raw(), %s.Object", "spec": `%s.Raw()["spec"]`, "status": `%s.Raw()["status"]`, "meta": `%s.Raw()["metadata"], %s.Object`,
	"labels": "%s.Object.GetLabels()", "annotations": "%s.Object.GetAnnotations()", "patch": "%s.Patch", "resource": "%s.Resource",
	"retry": "%s.Retry", "started": "%s.Started", "runtime": "time.Since(%s.Started)", "memo": "gopf.Memo[your type](%s); in activities, a variable",
	"old": "%s.Old; of a field: %s.OldValue()", "new": "%s.Object; of a field: %s.NewValue()", "diff": "%s.Diff", "reason": "%s.Reason",
	"event": "%s.Type, %s.Raw()", "type": "%s.Type", "stopped": "ctx.Done(), %s.Stopping()", "settings": "%s.Settings",
	"param": "a variable of a closure", "indices": "the variables that gopf.Index returns", "activity": "each activity has its own function",
	"dryrun": "%s.DryRun", "operation": "%s.Operation", "subresource": "%s.Subresource", "userinfo": "%s.User", "headers": "%s.Header",
	"sslpeer": "%s.ClientCertificate", "warnings": "%s.AddWarning", "kwargs": "by name",
}

// variables are the Go names of the arguments by family.
var variables = map[string]string{
	"change": "c", "event": "e", "daemon": "d", "timer": "t", "review": "r", "index": "s", "activity": "a", "login": "a", "probe": "a", "when": "c",
}

// env translates the expressions and statements of one function.
type env struct {
	o      *operator
	m      *module
	family string
	v      string          // the Go argument
	params map[string]bool // of the Python function
	locals map[string]int  // variables that are declared in Go, and how often they are used
	loose  bool            // other names stand for Go variables; only for suggestions in comments

	ofField bool     // all handlers of the function are about a field: old and new are its values
	nested  int      // blocks around the statement
	hoisted []string // variables to declare before the outermost block
}

func (o *operator) env(m *module, family string, params []python.Param) *env {
	e := &env{o: o, m: m, family: family, v: variables[family], params: map[string]bool{}, locals: map[string]int{}}
	for _, p := range params {
		e.params[p.Name] = true
	}
	return e
}

// kinds of Go expressions
const (
	typeAny    = "any"
	typeString = "string"
	typeInt    = "int"
	typeNumber = "number" // a constant
	typeBool   = "bool"
)

// roots are the arguments that are parts of the object.
var roots = map[string][]string{
	"body": {}, "spec": {"spec"}, "status": {"status"}, "meta": {"metadata"}, "labels": {"metadata", "labels"}, "annotations": {"metadata", "annotations"},
}

// path returns the keys of a value in the object: spec['a'].get('b') is spec, a, b.
func (t *env) path(e *python.Expr, depth int) ([]string, bool) {
	if depth > maxDepth || t.family == "activity" || t.family == "login" || t.family == "probe" || t.family == "value" {
		return nil, false
	}
	switch e.Kind {
	case python.Name:
		keys, ok := roots[e.Value]
		return keys, ok && t.params[e.Value]
	case python.Subscript:
		return t.extend(e.X, e.Args[0], depth)
	case python.Attribute:
		keys, ok := t.path(e.X, depth+1)
		if !ok {
			return nil, false
		}
		// Of the views of Kopf, the body has its parts as attributes, and the metadata have some.
		parts := map[string]string{"spec": "spec", "status": "status", "meta": "metadata", "metadata": "metadata"}
		if len(keys) == 1 && keys[0] == "metadata" {
			parts = map[string]string{"labels": "labels", "annotations": "annotations", "name": "name", "namespace": "namespace", "uid": "uid"}
		} else if len(keys) > 0 {
			return nil, false
		}
		return append(keys[:len(keys):len(keys)], parts[e.Value]), parts[e.Value] != ""
	case python.Call:
		if e.X.Kind == python.Attribute && e.X.Value == "get" && len(e.Keywords) == 0 && (len(e.Args) == 1 || len(e.Args) == 2 && empty(e.Args[1])) {
			return t.extend(e.X.X, e.Args[0], depth)
		}
	}
	return nil, false
}

// empty reports whether a default has no effect: None, {} or [].
func empty(e *python.Expr) bool {
	return isNone(e) || (e.Kind == python.Dict || e.Kind == python.List) && len(e.Args) == 0
}

func (t *env) extend(x, key *python.Expr, depth int) ([]string, bool) {
	keys, ok := t.path(x, depth+1)
	k, constant := t.o.text(t.m, key, 0)
	return append(keys[:len(keys):len(keys)], k.is), ok && constant && k.constant
}

// value translates an expression. Its type is one of the constants above.
func (t *env) value(e *python.Expr, depth int) (code, typ string, ok bool) {
	if e == nil || depth > maxDepth {
		return "", "", false
	}
	if keys, ok := t.path(e, 0); ok && len(keys) > 0 {
		t.o.helpers["at"] = true
		return fmt.Sprintf("at(%s, %s)", t.v, quoted(keys)), typeAny, true
	}
	if t.isEventType(e) {
		return t.name(&python.Expr{Kind: python.Name, Value: "type"})
	}
	switch e.Kind {
	case python.String:
		return strconv.Quote(e.Value), typeString, true
	case python.Number:
		return e.Value, typeNumber, plainNumber(e.Value)
	case python.Constant:
		switch e.Value {
		case "True", "False":
			return strings.ToLower(e.Value), typeBool, true
		case "None":
			return "nil", typeAny, true
		}
	case python.Formatted:
		return t.formatted(e, depth)
	case python.Dict, python.List, python.Tuple:
		return t.composite(e, depth)
	case python.Name:
		return t.name(e)
	case python.Attribute:
		if text, ok := t.o.text(t.m, e, 0); ok && text.constant {
			return text.code, typeString, true
		}
	case python.Binary:
		a, at, ok := t.value(e.Args[0], depth+1)
		b, bt, also := t.value(e.Args[1], depth+1)
		if ok && also && e.Value == "+" && at == typeString && bt == typeString {
			return a + " + " + b, typeString, true
		}
	case python.Call:
		if name, _ := e.X.Dotted(); name == "str" && len(e.Args) == 1 && len(e.Keywords) == 0 {
			if code, _, ok := t.value(e.Args[0], depth+1); ok {
				return "fmt.Sprint(" + code + ")", typeString, true
			}
		}
	}
	return "", "", false
}

// isEventType reports whether the expression is event['type'] or event.get('type').
func (t *env) isEventType(e *python.Expr) bool {
	x, key := e.X, (*python.Expr)(nil)
	switch {
	case e.Kind == python.Subscript:
		key = e.Args[0]
	case e.Kind == python.Call && len(e.Args) == 1 && x.Kind == python.Attribute && x.Value == "get":
		x, key = x.X, e.Args[0]
	}
	if key == nil || key.Value != "type" || x.Kind != python.Name || x.Value != "event" || !t.params["event"] {
		return false
	}
	t.params["type"] = true
	return true
}

// plainNumber reports whether the number is written as in Go, with the same meaning.
func plainNumber(s string) bool {
	if _, err := strconv.ParseInt(s, 10, 64); err == nil {
		return s == "0" || !strings.HasPrefix(s, "0")
	}
	_, err := strconv.ParseFloat(s, 64)
	return err == nil && !strings.ContainsAny(s, "xX")
}

func quoted(keys []string) string {
	var all []string
	for _, k := range keys {
		all = append(all, strconv.Quote(k))
	}
	return strings.Join(all, ", ")
}

func (t *env) name(e *python.Expr) (code, typ string, ok bool) {
	if _, local := t.locals[e.Value]; local {
		t.locals[e.Value]++
		return localName(e.Value), typeAny, true
	}
	object := t.family != "activity" && t.family != "login" && t.family != "probe" && t.family != "value"
	if t.params[e.Value] && object {
		switch {
		case e.Value == "name" || e.Value == "namespace":
			return fmt.Sprintf(members[e.Value], t.v), typeString, true
		case e.Value == "uid":
			return "string(" + t.v + ".Object.GetUID())", typeString, true
		case e.Value == "retry" && t.family != "when":
			return t.v + ".Retry", typeInt, true
		case e.Value == "type" && t.family == "event":
			return t.v + ".Type", typeString, true
		case e.Value == "type" && t.family == "when":
			return t.v + ".Event", typeString, true
		case e.Value == "operation" && (t.family == "when" || t.family == "review"):
			return "string(" + t.v + ".Operation)", typeString, true
		case e.Value == "dryrun" && t.family == "review":
			return t.v + ".DryRun", typeBool, true
		}
	}
	if t.params[e.Value] && t.ofField && (e.Value == "old" || e.Value == "new") {
		t.o.helpers["first"] = true
		return map[string]string{"old": "first(c.OldValue())", "new": "first(c.NewValue())"}[e.Value], typeAny, true
	}
	if t.params[e.Value] && t.family == "value" && e.Value == "value" {
		return "value", typeAny, true
	}
	if t.params[e.Value] {
		return "", "", false
	}
	if text, ok := t.o.text(t.m, e, 0); ok && text.constant {
		return text.code, typeString, true
	}
	if t.loose {
		return identifier(e.Value), typeAny, true
	}
	return "", "", false
}

// formatted translates an f-string.
func (t *env) formatted(e *python.Expr, depth int) (code, typ string, ok bool) {
	format, args, ok := t.format(e, depth)
	if !ok {
		return "", "", false
	}
	if len(args) == 0 {
		return strconv.Quote(strings.ReplaceAll(format, "%%", "%")), typeString, true
	}
	return "fmt.Sprintf(" + strings.Join(append([]string{strconv.Quote(format)}, args...), ", ") + ")", typeString, true
}

// format returns the format of a text and its arguments, for fmt.Sprintf.
func (t *env) format(e *python.Expr, depth int) (format string, args []string, ok bool) {
	if e.Kind == python.String {
		return strings.ReplaceAll(e.Value, "%", "%%"), nil, true
	}
	if e.Kind != python.Formatted {
		code, _, ok := t.value(e, depth+1)
		return "%v", []string{code}, ok
	}
	for _, p := range e.Args {
		f, a, ok := t.format(p, depth+1)
		if !ok || depth > maxDepth {
			return "", nil, false
		}
		format += f
		args = append(args, a...)
	}
	return format, args, true
}

// composite translates a dictionary or a list.
func (t *env) composite(e *python.Expr, depth int) (code, typ string, ok bool) {
	var all []string
	for i := 0; i < len(e.Args); i++ {
		if e.Args[i] == nil || e.Args[i].Kind == python.Starred {
			return "", "", false
		}
		item, kind, ok := t.value(e.Args[i], depth+1)
		if !ok {
			return "", "", false
		}
		if e.Kind == python.Dict {
			i++
			value, _, ok := t.value(e.Args[i], depth+1)
			if !ok || kind != typeString {
				return "", "", false
			}
			item += ": " + value
		}
		all = append(all, item)
	}
	if e.Kind == python.Dict {
		return "map[string]any{" + strings.Join(all, ", ") + "}", typeAny, true
	}
	return "[]any{" + strings.Join(all, ", ") + "}", typeAny, true
}
