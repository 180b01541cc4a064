package admission

import (
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
)

// mutation returns the JSON patch operations that apply the patch to the proposed
// object. Maps that become empty are removed, as in Kopf.
func mutation(body *object.Body, p *patch.Patch) []patch.Op {
	if p.Empty() {
		return nil // avoids decoding the object
	}
	fields, merge := body.Map(), p.Fields()
	if len(p.Edits()) > 0 {
		after := jsonvalue.Clone(fields).(map[string]any)
		patch.Apply(after, merge)
		for _, edit := range p.Edits() {
			edit(after)
		}
		merge = patch.Between(fields, after)
	}
	return patch.Ops(fields, merge, func(string) bool { return true })
}
