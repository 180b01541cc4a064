package admission

import (
	"gopf.dev/gopf/internal/fieldpath"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
)

// mutation is what a patch does to the object under review, as operations of a
// JSON patch. Maps that lose their last key go with it, as in Kopf.
func mutation(body *object.Body, p *patch.Patch) []patch.Op {
	if p.Empty() {
		return nil // without decoding the object
	}
	fields, merge := body.Map(), p.Fields()
	if len(p.Edits()) > 0 {
		after := fieldpath.Clone(fields).(map[string]any)
		patch.Apply(after, merge)
		for _, edit := range p.Edits() {
			edit(after)
		}
		merge = patch.Between(fields, after)
	}
	return patch.Ops(fields, merge, func(string) bool { return true })
}
