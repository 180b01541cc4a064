package migrate

import (
	"math"
	"strconv"
	"strings"
	"time"

	"gopf.dev/gopf/internal/dev/python"
)

// maxDepth limits the chain of constants that refer to each other.
const maxDepth = 20

// text is a string: a constant, or a Go expression.
type text struct {
	is       string
	constant bool
	code     string
}

func constant(s string) text { return text{s, true, strconv.Quote(s)} }

// text returns the value of an expression that is a string.
func (o *operator) text(m *module, e *python.Expr, depth int) (text, bool) {
	if e == nil || depth > maxDepth {
		return text{}, false
	}
	switch e.Kind {
	case python.String:
		return constant(e.Value), true
	case python.Formatted:
		return o.join(m, e.Args, depth)
	case python.Binary:
		if e.Value == "+" {
			return o.join(m, e.Args, depth)
		}
	case python.Name, python.Attribute:
		if found, in := o.lookup(m, e); found != nil {
			return o.text(in, found, depth+1)
		}
	case python.Subscript:
		if m.canonical(e.X) == "os.environ" {
			if key, ok := o.text(m, e.Args[0], depth+1); ok {
				return text{code: "os.Getenv(" + key.code + ")"}, true
			}
		}
	case python.Call:
		if name := m.canonical(e.X); name == "os.environ.get" || name == "os.getenv" {
			return o.environment(m, e, depth)
		}
		if name, _ := e.X.Dotted(); name == "str" && len(e.Args) == 1 {
			return o.text(m, e.Args[0], depth+1)
		}
	}
	return text{}, false
}

// environment translates os.environ.get(key, default).
func (o *operator) environment(m *module, e *python.Expr, depth int) (text, bool) {
	args := e.Args
	for _, k := range e.Keywords {
		args = append(args, k.Value)
	}
	if len(args) == 0 || len(args) > 2 {
		return text{}, false
	}
	key, ok := o.text(m, args[0], depth+1)
	if !ok {
		return text{}, false
	}
	if len(args) == 1 || args[1].Value == "None" {
		return text{code: "os.Getenv(" + key.code + ")"}, true
	}
	otherwise, ok := o.text(m, args[1], depth+1)
	return text{code: "cmp.Or(os.Getenv(" + key.code + "), " + otherwise.code + ")"}, ok
}

func (o *operator) join(m *module, parts []*python.Expr, depth int) (text, bool) {
	var all text
	all.constant = true
	var codes []string
	for _, p := range parts {
		t, ok := o.text(m, p, depth+1)
		if !ok {
			return text{}, false
		}
		all.is += t.is
		all.constant = all.constant && t.constant
		codes = append(codes, t.code)
	}
	if all.constant {
		return constant(all.is), true
	}
	all.code = strings.Join(codes, "+")
	return all, true
}

// lookup returns the value of a module-level name, in this module or in an imported one that
// was given, and the module that defines it.
func (o *operator) lookup(m *module, e *python.Expr) (*python.Expr, *module) {
	dotted, ok := e.Dotted()
	if !ok {
		return nil, nil
	}
	if found, ok := m.values[dotted]; ok {
		return found, m
	}
	full := m.canonical(e)
	for name := full; name != ""; {
		at := strings.LastIndex(name, ".")
		if at < 0 {
			return nil, nil
		}
		name = name[:at]
		if other := o.modules[name[strings.LastIndex(name, ".")+1:]]; other != nil && other != m {
			return other.values[full[len(name)+1:]], other
		}
	}
	return nil, nil
}

// number returns the value of an expression that is a number.
func (o *operator) number(m *module, e *python.Expr, depth int) (float64, bool) {
	if e == nil || depth > maxDepth {
		return 0, false
	}
	switch e.Kind {
	case python.Number:
		n, err := strconv.ParseFloat(e.Value, 64)
		return n, err == nil && !math.IsInf(n, 0)
	case python.Unary:
		n, ok := o.number(m, e.X, depth+1)
		return -n, ok && e.Value == "-"
	case python.Name, python.Attribute:
		if found, in := o.lookup(m, e); found != nil {
			return o.number(in, found, depth+1)
		}
	case python.Binary:
		a, ok := o.number(m, e.Args[0], depth+1)
		b, also := o.number(m, e.Args[1], depth+1)
		if !ok || !also {
			return 0, false
		}
		switch {
		case e.Value == "*":
			return a * b, true
		case e.Value == "+":
			return a + b, true
		case e.Value == "-":
			return a - b, true
		case e.Value == "/" && b != 0:
			return a / b, true
		}
	case python.Call:
		if name := m.canonical(e.X); strings.HasSuffix(name, "timedelta") {
			return o.timedelta(m, e, depth)
		}
		if name, _ := e.X.Dotted(); (name == "int" || name == "float") && len(e.Args) == 1 && len(e.Keywords) == 0 {
			n, ok := o.number(m, e.Args[0], depth+1)
			if name == "int" {
				n = math.Trunc(n)
			}
			return n, ok
		}
		// timedelta(minutes=5).total_seconds()
		if e.X.Kind == python.Attribute && e.X.Value == "total_seconds" && len(e.Args) == 0 {
			return o.number(m, e.X.X, depth+1)
		}
	}
	return 0, false
}

func (o *operator) timedelta(m *module, e *python.Expr, depth int) (sum float64, ok bool) {
	units := map[string]float64{"weeks": 604800, "days": 86400, "hours": 3600, "minutes": 60, "seconds": 1, "milliseconds": 0.001}
	if len(e.Args) > 0 {
		return 0, false
	}
	for _, k := range e.Keywords {
		n, ok := o.number(m, k.Value, depth+1)
		if !ok || units[k.Name] == 0 {
			return 0, false
		}
		sum += n * units[k.Name]
	}
	return sum, true
}

// duration returns the Go expression for a number of seconds.
func duration(seconds float64) string {
	d := time.Duration(math.Round(seconds * float64(time.Second)))
	for _, unit := range []struct {
		is   time.Duration
		name string
	}{{time.Hour, "time.Hour"}, {time.Minute, "time.Minute"}, {time.Second, "time.Second"}, {time.Millisecond, "time.Millisecond"}, {1, "time.Nanosecond"}} {
		switch {
		case d == 0:
			return "0"
		case d == unit.is:
			return unit.name
		case d%unit.is == 0:
			return strconv.FormatInt(int64(d/unit.is), 10) + " * " + unit.name
		}
	}
	return "0"
}

// boolean returns the value of True and False.
func boolean(e *python.Expr) (value, ok bool) {
	return e.Kind == python.Constant && e.Value == "True", e.Kind == python.Constant && (e.Value == "True" || e.Value == "False")
}

func isNone(e *python.Expr) bool { return e.Kind == python.Constant && e.Value == "None" }
