package spec

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"gopf.dev/gopf/internal/suggest"
)

// Node is a part of a file that is decoded later, or kept as it is.
type Node struct {
	Pos   `json:"-"`
	Value any // maps, lists and scalars, as decoded from JSON

	node *yaml.Node
}

// Present reports whether the file has the part.
func (n Node) Present() bool { return n.node != nil }

// DecodeInto decodes the part into the value that target points to. Unknown keys are
// problems.
func (n Node) DecodeInto(target any, problems *Problems) {
	if n.node != nil {
		d := decoder{file: n.File, problems: problems}
		d.decode(n.node, reflect.ValueOf(target).Elem(), "")
	}
}

// Decode decodes the first YAML document of the text into the value that target points to.
// It reports unknown keys, doubled keys and values of the wrong type.
func Decode(file string, text []byte, target any, problems *Problems) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		problems.Add(Pos{file, errorLine(err)}, "read YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		return
	}
	if len(doc.Content) == 0 {
		problems.Add(Pos{file, 1}, "the file is empty")
		return
	}
	d := decoder{file: file, problems: problems}
	d.decode(doc.Content[0], reflect.ValueOf(target).Elem(), "")
}

func errorLine(err error) int {
	line := 1
	if _, after, ok := strings.Cut(err.Error(), "line "); ok {
		_, _ = fmt.Sscanf(after, "%d", &line)
	}
	return line
}

type decoder struct {
	file     string
	problems *Problems
	depth    int
}

func (d *decoder) at(n *yaml.Node) Pos { return Pos{d.file, n.Line} }

// maxDepth limits the nesting of a file. An alias may refer to itself.
const maxDepth = 100

var (
	durationType = reflect.TypeFor[time.Duration]()
	nodeType     = reflect.TypeFor[Node]()
)

// decode decodes a node into a value. path is for messages.
func (d *decoder) decode(n *yaml.Node, v reflect.Value, path string) {
	d.depth++
	defer func() { d.depth-- }()
	if d.depth > maxDepth {
		d.problems.Add(d.at(n), "%s is nested too deeply", name(path))
		return
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case v.Type() == nodeType:
		v.Set(reflect.ValueOf(Node{Pos: d.at(n), Value: d.value(n), node: n}))
	case v.Type() == durationType:
		d.duration(n, v, path)
	case n.Tag == "!!null" && v.Kind() != reflect.Interface: // the zero value
		d.place(n, v, path)
	default:
		d.decodeKind(n, v, path)
	}
}

func (d *decoder) decodeKind(n *yaml.Node, v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Struct:
		d.object(n, v, path)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.decode(n, v.Elem(), path)
	case reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			d.wrong(n, path, "a list")
			return
		}
		list := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
		for i, item := range n.Content {
			d.decode(item, list.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
		v.Set(list)
	case reflect.Map:
		if n.Kind != yaml.MappingNode {
			d.wrong(n, path, "a map")
			return
		}
		m := reflect.MakeMap(v.Type())
		for key, value := range d.pairs(n) {
			one := reflect.New(v.Type().Elem()).Elem()
			d.decode(value, one, join(path, key.Value))
			m.SetMapIndex(reflect.ValueOf(key.Value), one)
		}
		v.Set(m)
	case reflect.String:
		if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
			d.wrong(n, path, "a text; put it in quotes")
			return
		}
		v.SetString(n.Value)
	case reflect.Bool:
		if b, ok := d.value(n).(bool); ok {
			v.SetBool(b)
			return
		}
		d.wrong(n, path, "true or false")
	case reflect.Int, reflect.Int32, reflect.Int64:
		if i, ok := d.value(n).(int64); ok && !v.OverflowInt(i) {
			v.SetInt(i)
			return
		}
		d.wrong(n, path, "a whole number")
	case reflect.Float64:
		switch x := d.value(n).(type) {
		case int64:
			v.SetFloat(float64(x))
		case float64:
			v.SetFloat(x)
		default:
			d.wrong(n, path, "a number")
		}
	case reflect.Interface:
		if value := d.value(n); value != nil && v.NumMethod() == 0 {
			v.Set(reflect.ValueOf(value))
		} else if v.NumMethod() > 0 {
			d.problems.Add(d.at(n), "%s cannot be set in a file; set it in Go", name(path))
		}
	default:
		d.problems.Add(d.at(n), "%s cannot be set in a file; set it in Go", name(path))
	}
}

func (d *decoder) wrong(n *yaml.Node, path, expected string) {
	d.problems.Add(d.at(n), "%s must be %s", name(path), expected)
}

func name(path string) string {
	if path == "" {
		return "the document"
	}
	return path
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func (d *decoder) duration(n *yaml.Node, v reflect.Value, path string) {
	parsed, err := time.ParseDuration(n.Value)
	switch {
	case n.Tag == "!!null":
	case n.Kind == yaml.ScalarNode && n.Value == "0":
		v.SetInt(0)
	case n.Kind != yaml.ScalarNode || err != nil:
		d.wrong(n, path, "a duration with a unit, such as 10s or 1h30m")
	default:
		v.SetInt(int64(parsed))
	}
}

// pairs yields the keys and values of a map. Doubled keys are problems.
func (d *decoder) pairs(n *yaml.Node) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		seen := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if seen[key.Value] {
				d.problems.Add(d.at(key), "the key %q is given twice", key.Value)
			}
			seen[key.Value] = true
			if !yield(key, n.Content[i+1]) {
				return
			}
		}
	}
}

// place sets the position of a struct, except of the document itself. It gives a line to the
// problems of an item that is no map.
func (d *decoder) place(n *yaml.Node, v reflect.Value, path string) {
	if p, ok := v.Addr().Interface().(interface{ setPos(Pos) }); ok && path != "" {
		p.setPos(d.at(n))
	}
}

func (d *decoder) object(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		d.place(n, v, path)
		d.wrong(n, path, "a map")
		return
	}
	if p, ok := v.Addr().Interface().(interface{ setPos(Pos) }); ok {
		p.setPos(d.at(n))
	}
	fields := fieldsOf(v.Type())
	for key, value := range d.pairs(n) {
		index, ok := fields[key.Value]
		if !ok {
			where := ""
			if path != "" {
				where = " in " + path
			}
			d.problems.Add(d.at(key), "unknown key %q%s%s", key.Value, where, suggest.DidYouMean(key.Value, slices.Sorted(maps.Keys(fields)), "%q"))
			continue
		}
		d.decode(value, v.FieldByIndex(index), join(path, key.Value))
	}
}

// fieldsOf returns the fields of a struct by their keys: the JSON name, or the name of the
// field with a lower-case initial.
func fieldsOf(t reflect.Type) map[string][]int {
	fields := map[string][]int{}
	for _, f := range reflect.VisibleFields(t) {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || f.Anonymous || tag == "-" || hidden(t, f.Index) {
			continue
		}
		if tag == "" {
			tag = lowerInitial(f.Name)
		}
		fields[tag] = f.Index
	}
	return fields
}

// hidden reports whether the field is inside of an embedded struct without keys.
func hidden(t reflect.Type, index []int) bool {
	return len(index) > 1 && t.Field(index[0]).Tag.Get("json") == "-"
}

// lowerInitial returns the name with its leading capitals in lower case: "URL" → "url".
func lowerInitial(name string) string {
	n := 0
	for n < len(name) && name[n] >= 'A' && name[n] <= 'Z' {
		n++
	}
	if n > 1 && n < len(name) {
		n--
	}
	return strings.ToLower(name[:n]) + name[n:]
}

// value returns the node as decoded JSON. Integers are int64.
func (d *decoder) value(n *yaml.Node) any {
	d.depth++
	defer func() { d.depth-- }()
	if d.depth > maxDepth {
		d.problems.Add(d.at(n), "the value is nested too deeply")
		return nil
	}
	switch n.Kind {
	case yaml.AliasNode:
		return d.value(n.Alias)
	case yaml.MappingNode:
		m := map[string]any{}
		for key, value := range d.pairs(n) {
			m[key.Value] = d.value(value)
		}
		return m
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			list[i] = d.value(item)
		}
		return list
	}
	switch n.Tag {
	case "!!null":
		return nil
	case "!!bool", "!!int", "!!float":
		return d.scalar(n)
	}
	return n.Value
}

func (d *decoder) scalar(n *yaml.Node) any {
	var v any
	if err := n.Decode(&v); err != nil {
		d.problems.Add(d.at(n), "%v", err)
		return nil
	}
	switch x := v.(type) {
	case int:
		return int64(x)
	case uint64:
		return float64(x)
	case float64:
		if math.IsInf(x, 0) || math.IsNaN(x) {
			d.problems.Add(d.at(n), "JSON has no number %s", n.Value)
			return nil
		}
	}
	return v
}
