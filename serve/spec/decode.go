package spec

import (
	"fmt"
	"maps"
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

// At returns the position of a value in the part, by its keys. ok is false if the file does
// not have it.
func (n Node) At(keys ...string) (at Pos, ok bool) {
	at, node := n.Pos, n.node
	d := decoder{file: n.File, problems: &Problems{}} // doubled keys were reported before
	for _, name := range keys {
		if node != nil && node.Kind == yaml.AliasNode {
			node = node.Alias
		}
		if node == nil || node.Kind != yaml.MappingNode {
			return at, false
		}
		parent := node
		node = nil
		for key, value := range d.pairs(parent) {
			if key.Value == name {
				at, node = d.at(key), value
				break
			}
		}
	}
	return at, node != nil
}

// DecodeInto decodes the part into the value that target points to. Unknown keys are
// problems, and negative durations and numbers. signed names the values that may be
// negative, such as "peering.priority".
func (n Node) DecodeInto(target any, problems *Problems, signed ...string) {
	if n.node != nil {
		d := decoder{file: n.File, problems: problems, unsigned: true, signed: signed}
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
	merges   int
	unsigned bool     // negative durations and numbers are problems
	signed   []string // paths of exceptions
}

func (d *decoder) at(n *yaml.Node) Pos { return Pos{d.file, n.Line} }

// maxDepth limits the nesting of a file. An alias may refer to itself.
const maxDepth = 100

var (
	durationType = reflect.TypeFor[time.Duration]()
	nodeType     = reflect.TypeFor[Node]()
)

// decode decodes a node into a value. path is for messages. It reports whether the node has
// the right type; if not, the value is unchanged.
func (d *decoder) decode(n *yaml.Node, v reflect.Value, path string) bool {
	d.depth++
	defer func() { d.depth-- }()
	if d.depth > maxDepth {
		d.problems.Add(d.at(n), "%s is nested too deeply", name(path))
		return false
	}
	if n.Kind == yaml.AliasNode {
		ok := d.decode(n.Alias, v, path)
		d.place(n, v, path) // the line of the alias, not of the anchor
		return ok
	}
	switch {
	case v.Type() == nodeType:
		v.Set(reflect.ValueOf(Node{Pos: d.at(n), Value: d.value(n), node: n}))
		return true
	case v.Type() == durationType:
		return d.duration(n, v, path)
	case n.Tag == "!!null" && v.Kind() != reflect.Interface: // the zero value
		d.place(n, v, path)
		return true
	}
	switch v.Kind() {
	case reflect.Struct:
		return d.object(n, v, path)
	case reflect.Pointer:
		target := reflect.New(v.Type().Elem())
		if !d.decode(n, target.Elem(), path) {
			return false
		}
		v.Set(target)
		return true
	case reflect.Slice:
		return d.list(n, v, path)
	case reflect.Map:
		return d.entries(n, v, path)
	}
	return d.single(n, v, path)
}

// list decodes a list. It leaves out items of the wrong type: the check would report them
// again.
func (d *decoder) list(n *yaml.Node, v reflect.Value, path string) bool {
	if n.Kind != yaml.SequenceNode {
		return d.wrong(n, path, "a list")
	}
	list := reflect.MakeSlice(v.Type(), 0, len(n.Content))
	for i, item := range n.Content {
		one := reflect.New(v.Type().Elem()).Elem()
		if d.decode(item, one, fmt.Sprintf("%s[%d]", path, i)) {
			list = reflect.Append(list, one)
		}
	}
	if list.Len() == 0 && len(n.Content) > 0 {
		return false
	}
	v.Set(list)
	return true
}

func (d *decoder) entries(n *yaml.Node, v reflect.Value, path string) bool {
	if n.Kind != yaml.MappingNode {
		return d.wrong(n, path, "a map")
	}
	m := reflect.MakeMap(v.Type())
	for key, value := range d.pairs(n) {
		one := reflect.New(v.Type().Elem()).Elem()
		if d.decode(value, one, join(path, key.Value)) {
			m.SetMapIndex(reflect.ValueOf(key.Value), one)
		}
	}
	v.Set(m)
	return true
}

// single decodes a value that has no parts, or any value.
func (d *decoder) single(n *yaml.Node, v reflect.Value, path string) bool {
	switch v.Kind() {
	case reflect.String:
		if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
			return d.wrong(n, path, "a text; put it in quotes")
		}
		v.SetString(n.Value)
	case reflect.Bool:
		b, ok := d.value(n).(bool)
		if !ok {
			return d.wrong(n, path, "true or false")
		}
		v.SetBool(b)
	case reflect.Int, reflect.Int32, reflect.Int64:
		i, ok := d.value(n).(int64)
		if !ok || v.OverflowInt(i) {
			return d.wrong(n, path, "a whole number")
		}
		if i < 0 && d.unsigned && !slices.Contains(d.signed, path) {
			return d.wrong(n, path, fmt.Sprintf("0 or more, not %d", i))
		}
		v.SetInt(i)
	case reflect.Float64:
		switch x := d.value(n).(type) {
		case int64:
			v.SetFloat(float64(x))
		case float64:
			v.SetFloat(x)
		default:
			return d.wrong(n, path, "a number")
		}
	case reflect.Interface:
		if v.NumMethod() > 0 {
			d.problems.Add(d.at(n), "%s cannot be set in a file; set it in Go", name(path))
			return false
		}
		if value := d.value(n); value != nil {
			v.Set(reflect.ValueOf(value))
		}
	default:
		d.problems.Add(d.at(n), "%s cannot be set in a file; set it in Go", name(path))
		return false
	}
	return true
}

// wrong reports a value of the wrong type. It returns false.
func (d *decoder) wrong(n *yaml.Node, path, expected string) bool {
	d.problems.Add(d.at(n), "%s must be %s", name(path), expected)
	return false
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

func (d *decoder) duration(n *yaml.Node, v reflect.Value, path string) bool {
	parsed, err := time.ParseDuration(n.Value)
	switch {
	case n.Tag == "!!null":
	case n.Kind == yaml.ScalarNode && n.Value == "0":
		v.SetInt(0)
	case n.Kind != yaml.ScalarNode || err != nil:
		return d.wrong(n, path, "a duration with a unit, such as 10s or 1h30m")
	case parsed < 0 && d.unsigned:
		return d.wrong(n, path, fmt.Sprintf("0 or more, not %s", n.Value))
	default:
		v.SetInt(int64(parsed))
	}
	return true
}

// place sets the position of a struct, except of the document itself. It gives a line to the
// problems of an item that is no map.
func (d *decoder) place(n *yaml.Node, v reflect.Value, path string) {
	if p, ok := v.Addr().Interface().(interface{ setPos(Pos) }); ok && path != "" {
		p.setPos(d.at(n))
	}
}

func (d *decoder) object(n *yaml.Node, v reflect.Value, path string) bool {
	if n.Kind != yaml.MappingNode {
		d.place(n, v, path)
		return d.wrong(n, path, "a map")
	}
	if p, ok := v.Addr().Interface().(interface{ setPos(Pos) }); ok {
		p.setPos(d.at(n))
	}
	known, _ := v.Addr().Interface().(interface{ keysOf() *keys })
	fields := fieldsOf(v.Type())
	for key, value := range d.pairs(n) {
		index, ok := fields[key.Value]
		if !ok {
			where := ""
			if path != "" {
				where = " in " + path
			}
			names := slices.Sorted(maps.Keys(fields))
			d.problems.Add(d.at(key), "unknown key %q%s%s", key.Value, where, suggest.DidYouMean(key.Value, names, "%q"))
			if known != nil {
				known.keysOf().reject(suggest.Closest(key.Value, names))
			}
			continue
		}
		ok = d.decode(value, v.FieldByIndex(index), join(path, key.Value))
		if known != nil {
			d.note(known.keysOf(), key, value, ok)
		}
	}
	return true
}

// note notes the lines of a key and of the entries of its map, and whether its value has the
// wrong type.
func (d *decoder) note(k *keys, key, value *yaml.Node, ok bool) {
	if !ok {
		k.reject(key.Value)
	}
	if value.Kind == yaml.AliasNode {
		value = value.Alias
	}
	if value.Tag == "!!null" {
		return
	}
	k.add(key.Value, d.at(key))
	if value.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(value.Content); i += 2 {
			k.add(join(key.Value, value.Content[i].Value), d.at(value.Content[i]))
		}
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
