package gotypes

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// kind is a Go type.
type kind struct {
	name    string
	nilable bool // nil is a value of it
	number  bool // its zero value is meaningful: a number or a boolean
	object  bool // it is a struct
}

// kind returns the Go type for a schema. Types that must be declared for it get the name,
// and are written by the functions that are added to later.
func (g *generator) kind(name, path string, s *schema, later *[]func()) kind {
	switch {
	case slices.Contains(g.options.Raw, path):
		delete(g.unused, path)
		g.imports["encoding/json"] = ""
		return kind{name: "json.RawMessage", nilable: true}
	case slices.Contains(g.options.Maps, path):
		delete(g.unused, path)
		return kind{name: "map[string]any", nilable: true}
	case s.IntOrString && strings.Contains(s.Pattern, "[KMGTPE]i"):
		g.imports["k8s.io/apimachinery/pkg/api/resource"] = ""
		return kind{name: "resource.Quantity", object: true}
	case s.IntOrString:
		g.imports["k8s.io/apimachinery/pkg/util/intstr"] = ""
		return kind{name: "intstr.IntOrString", object: true}
	}
	switch s.Type {
	case "object":
		return g.objectKind(name, path, s, later)
	case "array":
		item := s.Items
		if item == nil {
			item = &schema{}
		}
		of := g.kind(name+"Item", path+"[]", item, later)
		if item.Nullable && !of.nilable {
			of.name = "*" + of.name
		}
		return kind{name: "[]" + of.name, nilable: true}
	case "string":
		return g.stringKind(name, path, s, later)
	case "integer":
		if s.Format == "int32" {
			return kind{name: "int32", number: true}
		}
		return kind{name: "int64", number: true}
	case "number":
		return kind{name: "float64", number: true}
	case "boolean":
		return kind{name: "bool", number: true}
	}
	return kind{name: "any", nilable: true}
}

func (g *generator) objectKind(name, path string, s *schema, later *[]func()) kind {
	switch {
	case s.Embedded || len(s.Properties) == 0 && s.Additional.of == nil:
		return kind{name: "map[string]any", nilable: true}
	case len(s.Properties) == 0:
		of := g.kind(name+"Value", path+".*", s.Additional.of, later)
		if s.Additional.of.Nullable && !of.nilable {
			of.name = "*" + of.name
		}
		return kind{name: "map[string]" + of.name, nilable: true}
	}
	final := g.name(name)
	*later = append(*later, func() { g.object(final, path, s) })
	return kind{name: final, object: true}
}

func (g *generator) stringKind(name, path string, s *schema, later *[]func()) kind {
	switch {
	case s.Format == "date-time":
		g.imports["k8s.io/apimachinery/pkg/apis/meta/v1"] = "metav1"
		return kind{name: "metav1.Time", object: true}
	case s.Format == "byte":
		return kind{name: "[]byte", nilable: true}
	case len(s.Enum) > 0:
		final := g.name(name)
		*later = append(*later, func() { g.enum(final, path, s) })
		return kind{name: final}
	}
	return kind{name: "string"}
}

// enum writes a string type with a constant for each value.
func (g *generator) enum(name, path string, s *schema) {
	var b bytes.Buffer
	comment(&b, "", name+" is the type of "+path+".")
	fmt.Fprintf(&b, "type %s string\n\n", name)
	comment(&b, "", "The values of "+name+".")
	b.WriteString("const (\n")
	for _, value := range s.Enum {
		text, ok := value.(string)
		if !ok {
			continue // null, if the field is nullable
		}
		constant := name + identifier(text)
		if text == "" {
			constant = name + "Empty"
		}
		fmt.Fprintf(&b, "\t%s %s = %q\n", g.name(constant), name, text)
	}
	b.WriteString(")\n")
	g.body.WriteString("\n")
	g.body.Write(b.Bytes())
}
