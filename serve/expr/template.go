package expr

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gopf.dev/gopf/internal/jsonvalue"
)

// Template is a JSON value in which texts may have ${…} expressions. A text that is one
// expression alone has the type of its value. Values never become YAML or expressions.
type Template struct{ root part }

// part is a map, a list, or a leaf.
type part struct {
	fields map[string]part
	items  []part
	value  any  // a constant
	text   text // nil means that there is no expression
}

// text has constants and expressions in turns.
type text []segment

type segment struct {
	constant string
	expr     *Expr // nil means the constant
}

// Template compiles a value. All mistakes are returned together, with their paths.
func (e *Env) Template(v any) (*Template, error) {
	var problems []error
	root := e.part(v, "", &problems)
	return &Template{root}, errors.Join(problems...)
}

// Text compiles a text with ${…} expressions.
func (e *Env) Text(s string) (*Template, error) { return e.Template(s) }

func (e *Env) part(v any, path string, problems *[]error) part {
	switch x := v.(type) {
	case map[string]any:
		fields := map[string]part{}
		for _, key := range sortedKeys(x) {
			fields[key] = e.part(x[key], path+"."+key, problems)
		}
		return part{fields: fields}
	case []any:
		items := make([]part, len(x))
		for i, item := range x {
			items[i] = e.part(item, fmt.Sprintf("%s[%d]", path, i), problems)
		}
		return part{items: items}
	case string:
		parsed, err := e.text(x)
		if err != nil {
			if path != "" {
				err = fmt.Errorf("%s: %w", strings.TrimPrefix(path, "."), err)
			}
			*problems = append(*problems, err)
		}
		if parsed != nil {
			return part{text: parsed}
		}
		return part{value: strings.ReplaceAll(x, "$${", "${")}
	}
	return part{value: v}
}

// text splits a text into constants and expressions. "$${" stands for "${". nil means
// that there are no expressions.
func (e *Env) text(s string) (text, error) {
	var out text
	constant, found := "", false
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			break
		}
		if i > 0 && s[i-1] == '$' {
			constant += s[:i-1] + "${"
			s = s[i+2:]
			continue
		}
		end := closing(s[i+2:])
		if end < 0 {
			return nil, fmt.Errorf("the expression in %q has no closing brace", s)
		}
		expr, err := e.Compile(strings.TrimSpace(s[i+2 : i+2+end]))
		if err != nil {
			return nil, err
		}
		found = true
		if constant += s[:i]; constant != "" {
			out = append(out, segment{constant: constant})
		}
		out = append(out, segment{expr: expr})
		constant, s = "", s[i+2+end+1:]
	}
	if !found {
		return nil, nil
	}
	if constant += s; constant != "" {
		out = append(out, segment{constant: constant})
	}
	return out, nil
}

// closing returns the index of the brace that closes an expression, or -1. Braces in
// string literals and of map literals do not count.
func closing(s string) int {
	depth, quote := 0, byte(0)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '{':
			depth++
		case c == '}' && depth == 0:
			return i
		case c == '}':
			depth--
		}
	}
	return -1
}

// Render returns the value with all expressions replaced by their values. A key or list
// item whose value is an empty optional is left out. If the values are larger than an object can
// be, that is an error. The expressions share the time limit of an evaluation, but each has its
// own cost limit.
func (t *Template) Render(ctx context.Context, vars map[string]any) (any, error) {
	ctx, cancel := withTime(ctx)
	defer cancel()
	left := budget(maxSize)
	v, err := t.root.render(ctx, vars, "", &left)
	if _, omitted := v.(absent); omitted {
		return nil, err
	}
	return v, err
}

// Object is Render for a value that must be a map.
func (t *Template) Object(ctx context.Context, vars map[string]any) (map[string]any, error) {
	v, err := t.Render(ctx, vars)
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the template is %T, not a map", v)
	}
	return m, nil
}

func (p part) render(ctx context.Context, vars map[string]any, path string, left *budget) (any, error) {
	switch {
	case p.fields != nil:
		m := make(map[string]any, len(p.fields))
		for key, field := range p.fields {
			v, err := field.render(ctx, vars, path+"."+key, left)
			if err != nil {
				return nil, err
			}
			if _, omitted := v.(absent); !omitted {
				m[key] = v
			}
		}
		return m, nil
	case p.items != nil:
		list := make([]any, 0, len(p.items))
		for i, item := range p.items {
			v, err := item.render(ctx, vars, fmt.Sprintf("%s[%d]", path, i), left)
			if err != nil {
				return nil, err
			}
			if _, omitted := v.(absent); !omitted {
				list = append(list, v)
			}
		}
		return list, nil
	case p.text == nil:
		return p.value, nil
	}
	v, err := p.text.render(ctx, vars, left)
	if err != nil && path != "" {
		err = fmt.Errorf("%s: %w", strings.TrimPrefix(path, "."), err)
	}
	return v, err
}

func (t text) render(ctx context.Context, vars map[string]any, left *budget) (any, error) {
	if len(t) == 1 {
		return t[0].expr.eval(ctx, vars, left)
	}
	var b strings.Builder
	for _, s := range t {
		if b.Len() > maxText { // the JSON of a value may be longer than the value
			return nil, errSize
		}
		if s.expr == nil {
			b.WriteString(s.constant)
			continue
		}
		v, err := s.expr.eval(ctx, vars, left)
		if err != nil {
			return nil, err
		}
		switch x := v.(type) {
		case string:
			b.WriteString(x)
		case absent:
		default:
			encoded, err := jsonvalue.Marshal(x)
			if err != nil {
				return nil, err
			}
			b.Write(encoded)
		}
	}
	return b.String(), nil
}

// Condition compiles a text that is one ${…} expression, or an expression without the
// braces, and that must be true or false.
func (e *Env) Condition(s string) (*Expr, error) {
	s = strings.TrimSpace(s)
	if inner, ok := strings.CutPrefix(s, "${"); ok {
		end := closing(inner)
		if end != len(inner)-1 {
			return nil, fmt.Errorf("%q must be one expression", s)
		}
		s = inner[:end]
	}
	return e.CompileBool(strings.TrimSpace(s))
}
