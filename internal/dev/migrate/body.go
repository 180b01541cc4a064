package migrate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gopf.dev/gopf/internal/dev/python"
)

// statements translates all statements. ends reports that the last of them returns.
func (t *env) statements(body []*python.Stmt, depth int) (lines []string, ends, ok bool) {
	if depth > maxDepth {
		return nil, false, false
	}
	for i := 0; i < len(body); i++ {
		s := body[i]
		if ends {
			return nil, false, false // Go refuses code that is never reached
		}
		if s.Kind == python.Block {
			n, code, returns, ok := t.conditional(body[i:], depth)
			if !ok {
				return nil, false, false
			}
			if depth == 0 { // variables of Python belong to the whole function
				for _, name := range t.hoisted {
					lines = append(lines, "var "+name+" any")
				}
				t.hoisted = nil
			}
			lines = append(lines, code...)
			ends = returns
			i += n - 1
			continue
		}
		code, ok := t.statement(s)
		if !ok {
			return nil, false, false
		}
		lines = append(lines, code...)
		ends = s.Kind == python.Return || s.Kind == python.Raise
	}
	return lines, ends, true
}

// conditional translates "if" with all its branches. n is the number of statements.
func (t *env) conditional(body []*python.Stmt, depth int) (n int, lines []string, ends, ok bool) {
	ends = true
	last := ""
	for n < len(body) && body[n].Kind == python.Block {
		s := body[n]
		if first := n == 0; first != (s.Name == "if") || s.Name != "if" && s.Name != "elif" && s.Name != "else" {
			break
		}
		t.nested++
		inner, returns, ok := t.statements(s.Body, depth+1)
		t.nested--
		if !ok {
			return 0, nil, false, false
		}
		ends = ends && returns
		if s.Name == "else" {
			lines = append(lines[:len(lines)-1], "} else {")
		} else {
			condition, ok := t.condition(s.Value, 0)
			if !ok {
				return 0, nil, false, false
			}
			head := "if " + trim(condition) + " {"
			if n > 0 {
				head = "} else " + head
				lines = lines[:len(lines)-1]
			}
			lines = append(lines, head)
		}
		lines = append(append(lines, inner...), "}")
		last = s.Name
		if n++; last == "else" {
			break
		}
	}
	return n, lines, ends && last == "else", n > 0
}

// statement translates one statement without a block.
func (t *env) statement(s *python.Stmt) ([]string, bool) {
	switch s.Kind {
	case python.Pass:
		return nil, true
	case python.Return:
		return t.returned(s.Value)
	case python.Raise:
		return t.raised(s.Value)
	case python.Assign:
		return t.assigned(s)
	case python.Expression:
		return t.expression(s.Value)
	}
	return nil, false
}

// result returns a return statement with the error.
func (t *env) result(err string) string {
	if t.family == "index" || t.family == "login" || t.family == "probe" {
		return "return nil, " + err
	}
	return "return " + err
}

func (t *env) returned(e *python.Expr) ([]string, bool) {
	if e == nil || isNone(e) {
		return []string{t.result("nil")}, true
	}
	if t.family == "login" && e.Kind == python.Call {
		switch name, _ := t.m.kopf(e.X); name {
		case "login_with_kubeconfig":
			return []string{`return gopf.LoginWithKubeconfig("", "")(ctx, a)`}, true
		case "login_with_service_account":
			return []string{"return gopf.LoginWithServiceAccount()(ctx, a)"}, true
		}
	}
	code, _, ok := t.value(e, 0)
	switch {
	case !ok || t.family == "index" || t.family == "login" || t.family == "activity" || t.family == "review":
		return nil, false
	case t.family == "probe":
		return []string{"return " + code + ", nil"}, true
	}
	return []string{t.v + ".SetResult(" + code + ")", "return nil"}, true
}

// failure returns a Go error with the text of an exception.
func (t *env) failure(args []*python.Expr) (string, bool) {
	if len(args) == 0 {
		return `errors.New("failed")`, true
	}
	format, values, ok := t.format(args[0], 0)
	if !ok {
		return "", false
	}
	if len(values) == 0 {
		return "errors.New(" + strconv.Quote(strings.ReplaceAll(format, "%%", "%")) + ")", true
	}
	return "fmt.Errorf(" + strings.Join(append([]string{strconv.Quote(format)}, values...), ", ") + ")", true
}

// pythonErrors are exceptions that say nothing about retries.
var pythonErrors = []string{"Exception", "ValueError", "RuntimeError", "KeyError", "TypeError", "NotImplementedError", "LookupError", "OSError"}

func (t *env) raised(e *python.Expr) ([]string, bool) {
	if e == nil {
		return nil, false
	}
	class, call := e, &python.Expr{}
	if e.Kind == python.Call {
		class, call = e.X, e
	}
	err, ok := t.failure(call.Args)
	if !ok {
		return nil, false
	}
	name, kopf := t.m.kopf(class)
	if plain, _ := class.Dotted(); !kopf && slices.Contains(pythonErrors, plain) {
		return []string{t.result(err)}, len(call.Keywords) == 0
	}
	switch name {
	case "PermanentError":
		return []string{t.result("gopf.Permanent(" + err + ")")}, len(call.Keywords) == 0
	case "TemporaryError":
		delay := 60.0
		for _, k := range append(positionalDelay(call.Args), call.Keywords...) {
			n, ok := t.o.number(t.m, k.Value, 0)
			if !ok || k.Name != "delay" || n < 0 || n > 1e9 {
				return nil, false
			}
			delay = n
		}
		return []string{t.result("gopf.RetryAfter(" + duration(delay) + ", " + err + ")")}, true
	case "AdmissionError":
		return t.denied(call)
	}
	return nil, false
}

func positionalDelay(args []*python.Expr) (all []python.Keyword) {
	if len(args) > 1 {
		all = append(all, python.Keyword{Name: "delay", Value: args[1]})
	}
	return all
}

func (t *env) denied(call *python.Expr) ([]string, bool) {
	if len(call.Args) != 1 {
		return nil, false
	}
	message, typ, ok := t.value(call.Args[0], 0)
	if !ok || typ != typeString {
		return nil, false
	}
	code := ""
	for _, k := range call.Keywords {
		n, ok := t.o.number(t.m, k.Value, 0)
		if !ok || k.Name != "code" {
			return nil, false
		}
		code = fmt.Sprintf(", Code: %d", int(n))
	}
	return []string{t.result("&gopf.AdmissionError{Message: " + message + code + "}")}, true
}

// assigned translates changes of the patch, and local variables.
func (t *env) assigned(s *python.Stmt) ([]string, bool) {
	if len(s.Targets) != 1 {
		return nil, false
	}
	target := s.Targets[0]
	value, _, ok := t.value(s.Value, 0)
	if !ok {
		return nil, false
	}
	if keys, ok := t.patched(target, 0); ok && len(keys) > 1 {
		path := strconv.Quote(pointer(keys))
		if value == "nil" {
			return []string{t.v + ".Patch.Remove(" + path + ")"}, true
		}
		return []string{t.v + ".Patch.Set(" + path + ", " + value + ")"}, true
	}
	if target.Kind != python.Name || t.params[target.Value] || value == "nil" || t.loose {
		return nil, false
	}
	if _, again := t.locals[target.Value]; again {
		return []string{localName(target.Value) + " = " + value}, true
	}
	t.locals[target.Value] = 0
	if t.nested > 0 {
		t.hoisted = append(t.hoisted, localName(target.Value))
		return []string{localName(target.Value) + " = " + value}, true
	}
	return []string{"var " + localName(target.Value) + " any = " + value}, true
}

// patched returns the keys of patch.status['a']['b'] and similar expressions.
func (t *env) patched(e *python.Expr, depth int) ([]string, bool) {
	if !t.params["patch"] || depth > maxDepth || t.family == "when" || t.family == "index" {
		return nil, false
	}
	switch e.Kind {
	case python.Name:
		return nil, e.Value == "patch"
	case python.Attribute:
		keys, ok := t.patched(e.X, depth+1)
		key := map[string]string{"status": "status", "spec": "spec", "meta": "metadata", "metadata": "metadata", "labels": "labels", "annotations": "annotations"}[e.Value]
		return append(keys, key), ok && key != ""
	case python.Subscript:
		keys, ok := t.patched(e.X, depth+1)
		k, constant := t.o.text(t.m, e.Args[0], 0)
		return append(keys, k.is), ok && constant && k.constant
	case python.Call:
		if e.X.Kind == python.Attribute && e.X.Value == "setdefault" && len(e.Args) == 2 && empty(e.Args[1]) {
			keys, ok := t.patched(e.X.X, depth+1)
			k, constant := t.o.text(t.m, e.Args[0], 0)
			return append(keys, k.is), ok && constant && k.constant
		}
	}
	return nil, false
}

// pointer returns the path of keys: dotted, or a JSON pointer if a key has a dot.
func pointer(keys []string) string {
	if !strings.ContainsAny(strings.Join(keys, ""), "./~") {
		return strings.Join(keys, ".")
	}
	var b strings.Builder
	for _, k := range keys {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(k))
	}
	return b.String()
}
