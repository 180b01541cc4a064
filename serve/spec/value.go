package spec

import (
	"math"

	"go.yaml.in/yaml/v3"
)

// maxMerges limits the merged maps of a file. A map may be merged into itself.
const maxMerges = 1000

// pairs yields the keys and values of a map, and then those of its merge keys ("<<"), which
// do not replace other keys. Doubled keys are problems.
func (d *decoder) pairs(n *yaml.Node) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		seen := map[string]bool{}
		var merged []*yaml.Node
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if seen[key.Value] {
				d.problems.Add(d.at(key), "the key %q is given twice", key.Value)
			}
			seen[key.Value] = true
			if key.Tag == "!!merge" {
				merged = append(merged, n.Content[i+1])
			} else if !yield(key, n.Content[i+1]) {
				return
			}
		}
		for _, value := range merged {
			if !d.merge(value, seen, yield) {
				return
			}
		}
	}
}

// merge yields the keys of a map, or of a list of maps, that were not seen before. It reports
// whether the caller wants more.
func (d *decoder) merge(n *yaml.Node, seen map[string]bool, yield func(key, value *yaml.Node) bool) bool {
	if d.merges++; d.merges > maxMerges {
		if d.merges == maxMerges+1 {
			d.problems.Add(d.at(n), "the file has more than %d merged maps; a map may be merged into itself", maxMerges)
		}
		return false
	}
	at := n
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch n.Kind {
	case yaml.MappingNode:
		for key, value := range d.pairs(n) {
			if seen[key.Value] {
				continue
			}
			seen[key.Value] = true
			if !yield(key, value) {
				return false
			}
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			if !d.merge(item, seen, yield) {
				return false
			}
		}
	default:
		d.problems.Add(d.at(at), "the merge key << must have a map, such as <<: *defaults")
	}
	return true
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
