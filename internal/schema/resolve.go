package schema

import (
	"encoding/json"
	"slices"
	"strings"

	"gopf.dev/gopf/internal/jsonvalue"
)

// node is one schema, as far as it matters for paths.
type node struct {
	Ref        string                     `json:"$ref"`
	Type       string                     `json:"type"`
	Properties map[string]json.RawMessage `json:"properties"`
	Additional json.RawMessage            `json:"additionalProperties"` // a schema or a boolean
	Items      json.RawMessage            `json:"items"`
	AllOf      []json.RawMessage          `json:"allOf"`
	AnyOf      []json.RawMessage          `json:"anyOf"`
	OneOf      []json.RawMessage          `json:"oneOf"`

	Preserves   bool `json:"x-kubernetes-preserve-unknown-fields"`
	IntOrString bool `json:"x-kubernetes-int-or-string"`
	Embedded    bool `json:"x-kubernetes-embedded-resource"`
}

// maxNesting limits references to other schemas and alternatives at one key. More of
// them are a cycle.
const maxNesting = 32

// find looks for a path in a schema of the document.
func (d document) find(raw []byte, path jsonvalue.Path) Finding {
	for i, key := range path {
		l := level{document: d}
		l.add(raw, 0)
		if len(l.nodes) == 0 || l.broken {
			return Finding{Verdict: Unknown}
		}
		next, f := l.enter(key)
		if f.Verdict != Exists {
			f.At = i
			return f
		}
		raw = next
	}
	return Finding{}
}

// level has all schemas that describe one value: a schema, those that it refers to, and
// its alternatives.
type level struct {
	document document
	nodes    []node
	broken   bool // a schema cannot be read: nothing is known
	named    bool // one of them is a reference
}

func (l *level) add(raw []byte, depth int) {
	var n node
	if depth > maxNesting || json.Unmarshal(raw, &n) != nil {
		l.broken = true
		return
	}
	if n.Ref != "" {
		l.named = true
		l.add(l.document[strings.TrimPrefix(n.Ref, "#/components/schemas/")], depth+1)
	}
	l.nodes = append(l.nodes, n)
	for _, other := range slices.Concat(n.AllOf, n.AnyOf, n.OneOf) {
		l.add(other, depth+1)
	}
}

// enter returns the schema of the value at a key. If it has none, the finding says why.
func (l *level) enter(key string) (raw []byte, f Finding) {
	known, open, object := []string{}, false, false
	list, plain := false, false
	for _, n := range l.nodes {
		if property, ok := n.Properties[key]; ok {
			return property, Finding{}
		}
		if sub := string(n.Additional); sub != "" && sub != "true" && sub != "false" && sub != "null" {
			return n.Additional, Finding{}
		}
		for name := range n.Properties {
			known = append(known, name)
		}
		open = open || n.Preserves || string(n.Additional) == "true" || n.Embedded && embedded(key)
		switch {
		case n.Type == "object" || len(n.Properties) > 0:
			object = true
		case n.Type == "array":
			list = true
		case n.Type != "" || n.IntOrString:
			plain = true
		}
	}
	switch {
	case open:
		return nil, Finding{Verdict: Unknown}
	case object && (len(known) > 0 || !l.named):
		return nil, missing(0, known)
	case object: // types such as RawExtension: their names have a meaning, their schemas are empty
		return nil, Finding{Verdict: Unknown}
	case list:
		return nil, Finding{Verdict: Missing, Parent: "list"}
	case plain:
		return nil, Finding{Verdict: Missing, Parent: "plain value"}
	}
	return nil, Finding{Verdict: Unknown}
}

// embedded reports whether every embedded object has the field.
func embedded(key string) bool { return key == "apiVersion" || key == "kind" || key == "metadata" }
