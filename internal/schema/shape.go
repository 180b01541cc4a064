package schema

import "encoding/json"

// maxShape limits the parts of a [Shape]. Schemas with more of them have no shape.
const maxShape = 4096

// Shape is the part of a schema that decides which fields the API server keeps. nil keeps
// no field.
type Shape struct {
	all        bool // of any name and value
	properties map[string]*Shape
	others     *Shape // fields that are not among the properties; nil means that they are dropped
	items      *Shape
}

// Keeps reports whether the API server keeps all fields of the value of a merge patch. It
// may still refuse the value.
func (s *Shape) Keeps(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for name, field := range v {
			if !s.field(name).Keeps(field) {
				return false
			}
		}
	case []any:
		for _, item := range v {
			if s == nil || !s.all && !s.items.Keeps(item) {
				return false
			}
		}
	case nil, bool, string, json.Number, int64, float64:
	default: // a Go type whose fields are not known here
		return false
	}
	return s != nil
}

func (s *Shape) field(name string) *Shape {
	switch {
	case s == nil || s.all:
		return s
	case s.properties[name] != nil:
		return s.properties[name]
	}
	return s.others
}

// status returns the shape of the status in the schema of a kind. nil means that it is
// not known.
func (d document) status(raw []byte) *Shape {
	n, ok := d.resolve(raw)
	if !ok {
		return nil
	}
	left := maxShape
	return d.shape(n.Properties["status"], &left)
}

// shape returns the shape of a schema, as long as there are parts left. Parts that cannot
// be read keep no field.
func (d document) shape(raw []byte, left *int) *Shape {
	if *left--; *left < 0 || raw == nil {
		return nil
	}
	n, ok := d.resolve(raw)
	if !ok || n.Embedded { // the API server drops fields of embedded metadata
		return nil
	}
	s := &Shape{items: d.shape(n.Items, left)}
	switch string(n.Additional) {
	case "", "null", "false":
	case "true":
		s.others = &Shape{all: true}
	default:
		s.others = d.shape(n.Additional, left)
	}
	if n.Preserves {
		s.others = &Shape{all: true}
	}
	if len(n.Properties) == 0 && n.Items == nil && s.others != nil && s.others.all {
		return s.others
	}
	s.properties = make(map[string]*Shape, len(n.Properties))
	for name, property := range n.Properties {
		s.properties[name] = d.shape(property, left)
	}
	return s
}
