package migrate

import (
	"strings"
	"unicode"

	"gopf.dev/gopf/internal/dev/python"
)

// resource is the resource of a handler.
type resource struct {
	code     string // the Go expression of the handle
	name     string // as for op.Resource; empty if it is not a constant
	variable string // a suggestion for the name of the variable
}

// selector translates the arguments that select resources.
func (a *arguments) selector(call *python.Expr) resource {
	if len(call.Args) == 1 && call.Args[0].Kind != python.Starred {
		if name, ok := a.m.kopf(call.Args[0]); ok && name == "EVERYTHING" {
			return a.everything(call)
		}
	}
	var parts []text
	for i, e := range call.Args {
		t, ok := a.o.text(a.m, e, 0)
		if name, kopf := a.m.kopf(e); kopf && name == "EVERYTHING" && i > 0 {
			t, ok = constant("*"), true
		}
		if !ok {
			a.block("the resource %s is not a constant", short(e.Source))
			return resource{}
		}
		parts = append(parts, t)
	}
	keywords := map[string]text{}
	names := []string{}
	for _, k := range call.Keywords {
		if _, ok := selectors[k.Name]; !ok || isNone(k.Value) {
			continue
		}
		t, ok := a.o.text(a.m, k.Value, 0)
		if !ok {
			a.block("the resource %s=%s is not a constant", k.Name, short(k.Value.Source))
			return resource{}
		}
		keywords[k.Name] = t
		if selectors[k.Name] != "" {
			names = append(names, k.Name)
		}
	}
	switch {
	case len(parts) > 3 || len(parts)+len(names) == 0 || len(parts) > 0 && len(names) > 0 || len(names) > 1:
		a.block("its resource is not clear")
		return resource{}
	case len(names) == 1:
		return byKeyword(names[0], keywords)
	}
	return positional(parts, keywords)
}

func (a *arguments) everything(call *python.Expr) resource {
	r := resource{code: `op.Resource("*")`, name: "*", variable: "everything"}
	for _, k := range call.Keywords {
		if t, ok := a.o.text(a.m, k.Value, 0); ok && k.Name == "group" {
			return resource{code: "gopf.ForSelector[gopf.Unstructured](op, kind.Everything().InGroup(" + t.code + "))", variable: "everything"}
		}
	}
	return r
}

func byKeyword(by string, keywords map[string]text) resource {
	name := keywords[by]
	code := "kind." + selectors[by] + "(" + name.code + ")"
	if g, ok := keywords["group"]; ok {
		code += ".InGroup(" + g.code + ")"
	}
	if v, ok := keywords["version"]; ok {
		code += ".InVersion(" + v.code + ")"
	}
	r := resource{code: "gopf.ForSelector[gopf.Unstructured](op, " + code + ")", variable: variable(name)}
	g, hasGroup := keywords["group"]
	v, hasVersion := keywords["version"]
	if by == "plural" && hasGroup && hasVersion && g.constant && v.constant && name.constant {
		r.name = strings.TrimPrefix(g.is+"/"+v.is+"/"+name.is, "/")
	}
	return r
}

// positional translates up to three arguments; see the package kind for the text.
func positional(parts []text, keywords map[string]text) resource {
	last := parts[len(parts)-1]
	r := resource{variable: variable(last)}
	if len(parts) == 1 {
		g, hasGroup := keywords["group"]
		v, hasVersion := keywords["version"]
		if hasGroup && hasVersion {
			parts = []text{g, v, last}
		} else if hasGroup {
			parts = []text{g, last}
		} else if hasVersion {
			r.code = "gopf.ForSelector[gopf.Unstructured](op, kind.Named(" + last.code + ").InVersion(" + v.code + "))"
			return r
		}
	}
	if parts[0].constant && parts[0].is == "" {
		if len(parts) == 3 && parts[1].constant && parts[1].is == "v1" {
			parts = parts[1:]
		} else {
			r.code = "gopf.ForSelector[gopf.Unstructured](op, kind.Named(" + last.code + `).InGroup("")`
			if len(parts) == 3 {
				r.code += ".InVersion(" + parts[1].code + ")"
			}
			r.code += ")"
			return r
		}
	}
	constants := true
	var is, codes []string
	for _, p := range parts {
		constants = constants && p.constant
		is = append(is, p.is)
		codes = append(codes, p.code)
	}
	if constants {
		r.name = strings.Join(is, "/")
		r.code = "op.Resource(" + constant(r.name).code + ")"
		return r
	}
	r.code = "op.Resource(" + strings.Join(codes, `+"/"+`) + ")"
	return r
}

// variable returns a name for the handle of a resource.
func variable(name text) string {
	if !name.constant {
		return "objects"
	}
	if name.is == "*" {
		return "everything"
	}
	first, _, _ := strings.Cut(name.is, ".")
	if first == "" || !unicode.IsLetter(rune(first[0])) {
		return "objects"
	}
	return identifier(strings.ToLower(first[:1]) + first[1:])
}

// identifier returns a Go identifier for a Python name: "create_fn" becomes "createFn".
func identifier(name string) string {
	var b strings.Builder
	upper := false
	for _, c := range name {
		switch {
		case c == '_' || c == '.' || c == '-' || c == '<' || c == '>' || c > 127:
			upper = b.Len() > 0
		case upper:
			b.WriteRune(unicode.ToUpper(c))
			upper = false
		default:
			b.WriteRune(c)
		}
	}
	if b.Len() == 0 || b.String()[0] >= '0' && b.String()[0] <= '9' {
		return "handler" + b.String()
	}
	return b.String()
}
