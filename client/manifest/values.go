package manifest

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"

	"gopf.dev/gopf/internal/jsonvalue"
)

// values are the values that a template printed. The text has a token for each. A token is
// a plain word, so it is safe everywhere in YAML. It has random letters: no text of a
// user can contain one.
type values struct {
	prefix string
	token  *regexp.Regexp
	quoted *regexp.Regexp // a token that is alone in quotes
	all    []any
	texts  int // their length
}

// Limits of one template. Its values often come from an object that clients of the cluster write, and
// a short text takes a kilobyte while the YAML is parsed. API servers accept no larger objects.
const (
	maxPrinted = 20_000
	maxTexts   = 4 << 20 // of the values, in bytes
	maxText    = 4 << 20 // of the YAML with the tokens, in bytes
)

func newValues() *values {
	prefix := "value" + rand.Text() + "n"
	return &values{
		prefix: prefix,
		token:  regexp.MustCompile(prefix + "([0-9]+)([et])"), // "t" means that it is text
		quoted: regexp.MustCompile(`(["'])(` + prefix + `[0-9]+)e(["'])`),
	}
}

// print is called with each value that the template prints. It returns the token.
func (v *values) print(value any) (string, error) {
	v.all = append(v.all, value)
	v.texts += jsonvalue.TextSize(value, maxTexts)
	switch {
	case len(v.all) > maxPrinted:
		return "", fmt.Errorf("it prints more than %d values", maxPrinted)
	case v.texts > maxTexts:
		return "", fmt.Errorf("it prints values of more than %d MiB", maxTexts>>20)
	}
	return v.prefix + strconv.Itoa(len(v.all)-1) + "e", nil
}

// bounded is a text that refuses to become too long.
type bounded struct{ strings.Builder }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxText {
		return 0, fmt.Errorf("the YAML has more than %d MiB", maxText>>20)
	}
	return b.Builder.Write(p)
}

// execute executes a template. The text that it returns has tokens instead of values.
func execute(name, text string, data any) (string, *values, error) {
	v := newValues()
	const printer = "_gopf_print"
	t, err := template.New(name).Option("missingkey=error").Funcs(template.FuncMap{printer: v.print}).Parse(text)
	if err != nil {
		return "", nil, err
	}
	for _, one := range t.Templates() {
		if one.Tree != nil {
			tokenize(one.Root, printer)
		}
	}
	var out bounded
	if err := t.Execute(&out, data); err != nil {
		return "", nil, err
	}
	return v.quoted.ReplaceAllString(out.String(), "${1}${2}t${3}"), v, nil
}

// tokenize appends the printer to each pipeline that prints a value.
func tokenize(node parse.Node, printer string) {
	switch n := node.(type) {
	case *parse.ListNode:
		if n == nil {
			return
		}
		for _, inner := range n.Nodes {
			tokenize(inner, printer)
		}
	case *parse.ActionNode:
		if len(n.Pipe.Decl) == 0 {
			n.Pipe.Cmds = append(n.Pipe.Cmds, &parse.CommandNode{NodeType: parse.NodeCommand, Pos: n.Pos, Args: []parse.Node{parse.NewIdentifier(printer).SetPos(n.Pos)}})
		}
	case *parse.IfNode:
		tokenize(n.List, printer)
		tokenize(n.ElseList, printer)
	case *parse.RangeNode:
		tokenize(n.List, printer)
		tokenize(n.ElseList, printer)
	case *parse.WithNode:
		tokenize(n.List, printer)
		tokenize(n.ElseList, printer)
	}
}

// fill replaces the tokens in decoded YAML with their values.
func (v *values) fill(tree any) (any, error) {
	switch tree := tree.(type) {
	case map[string]any:
		out := make(map[string]any, len(tree))
		for key, inner := range tree {
			filled, err := v.fill(inner)
			if err != nil {
				return nil, err
			}
			name, err := v.text(key)
			if err != nil {
				return nil, err
			}
			if _, twice := out[name]; twice {
				return nil, fmt.Errorf("two values give the key %q", name)
			}
			out[name] = filled
		}
		return out, nil
	case []any:
		out := make([]any, len(tree))
		for i, inner := range tree {
			filled, err := v.fill(inner)
			if err != nil {
				return nil, err
			}
			out[i] = filled
		}
		return out, nil
	case string:
		if found := v.token.FindString(tree); found == tree && strings.HasSuffix(found, "e") {
			value, err := jsonvalue.Of(v.of(found))
			if err != nil {
				return nil, fmt.Errorf("encode a value: %w", err)
			}
			return value, nil
		}
		return v.text(tree)
	}
	return tree, nil
}

// of returns the value of a token.
func (v *values) of(token string) any {
	n, _ := strconv.Atoi(v.token.FindStringSubmatch(token)[1])
	return v.all[n]
}

// text returns a string with the values in place of the tokens.
func (v *values) text(s string) (string, error) {
	var problem error
	filled := v.token.ReplaceAllStringFunc(s, func(token string) string {
		value, err := jsonvalue.Of(v.of(token))
		switch value.(type) {
		case map[string]any, []any, nil:
			err = errors.Join(err, fmt.Errorf("a %T is no text; write it alone, or print one of its fields", v.of(token)))
		}
		problem = errors.Join(problem, err)
		return fmt.Sprint(value)
	})
	return filled, problem
}

// readable replaces the tokens in an error message with "VALUE".
func (v *values) readable(message string) string { return v.token.ReplaceAllString(message, "VALUE") }

func newLineReader(text string) *bufio.Reader { return bufio.NewReader(strings.NewReader(text)) }
