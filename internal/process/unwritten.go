package process

import (
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/patch"
)

// unwritten has the changes that handlers requested and that could not be written yet, in order. Any
// number of objects may have some, for as long as their annotations are full, other clients keep
// changing them, or the API server is down. So they are kept as JSON, and those of the same
// handler become one. The zero value has none.
type unwritten struct {
	parts  []unwrittenPart
	joined int // the parts after the last time when they were joined
}

type unwrittenPart struct {
	handler string
	text    []byte      // the merge patch as JSON; nil means none
	rest    patch.Patch // with the edits, which have no JSON
}

const (
	// fewParts is the number of parts from which those of the same handler are joined.
	fewParts = 8
	// maxText limits the merge patch of one handler, in bytes. API servers accept no larger
	// request. maxEdits limits the edits.
	maxText  = 3 << 20
	maxEdits = 64
)

func (u *unwritten) empty() bool { return len(u.parts) == 0 }

// add appends changes. Events of the object may let a handler request more and more while
// nothing can be written: then it loses the oldest changes. dropped is the last such handler; ""
// means none.
func (u *unwritten) add(parts []execute.Part) (dropped string) {
	for i := range parts {
		u.parts = append(u.parts, packed(&parts[i]))
	}
	if len(u.parts) <= max(fewParts, 2*u.joined) {
		return ""
	}
	all, dropped := joinedByHandler(u.take())
	for i := range all {
		u.parts = append(u.parts, packed(&all[i]))
	}
	u.joined = len(all)
	return dropped
}

// take returns the changes. None are left.
func (u *unwritten) take() (parts []execute.Part) {
	for _, p := range u.parts {
		part := execute.Part{Handler: p.handler, Patch: p.rest}
		if fields, err := jsonvalue.Decode(p.text); err == nil { // it fails for an empty text only
			part.Patch = p.rest.With(fields.(map[string]any))
		}
		parts = append(parts, part)
	}
	*u = unwritten{}
	return parts
}

// memory estimates the memory of the changes after they are decoded, in bytes.
func (u *unwritten) memory() (bytes int) {
	for _, p := range u.parts {
		bytes += jsonvalue.Memory(p.text)
	}
	return bytes
}

func packed(p *execute.Part) unwrittenPart {
	if len(p.Patch.Fields()) == 0 {
		return unwrittenPart{handler: p.Handler, rest: p.Patch}
	}
	text, err := jsonvalue.Encode(p.Patch.Fields())
	if err != nil {
		return unwrittenPart{handler: p.Handler, rest: p.Patch} // the write fails as well
	}
	return unwrittenPart{handler: p.Handler, text: text, rest: p.Patch.OnlyEdits()}
}

// joinedByHandler joins the parts of each handler at the place of its first one. Parts of others in
// between lose the fields that a later part has, so the last one still wins. dropped is the last
// handler that had too much; "" means none.
func joinedByHandler(parts []execute.Part) (joined []execute.Part, dropped string) {
	at, newest := map[string]int{}, map[string]patch.Patch{}
	for _, p := range parts {
		i, found := at[p.Handler]
		if !found {
			at[p.Handler] = len(joined)
			joined = append(joined, p)
			continue
		}
		for j := i + 1; j < len(joined); j++ {
			joined[j].Patch = joined[j].Patch.Minus(p.Patch.Fields())
		}
		joined[i].Patch.Absorb(&p.Patch)
		newest[p.Handler] = p.Patch
	}
	for handler, last := range newest {
		all := &joined[at[handler]].Patch
		if all.KeepEdits(maxEdits) {
			dropped = handler
		}
		if tooLong(all.Fields()) {
			*all, dropped = last, handler
		}
	}
	return joined, dropped
}

func tooLong(merge map[string]any) bool {
	if jsonvalue.Weight(merge) <= maxText { // decoded values take more memory than their JSON
		return false
	}
	text, err := jsonvalue.Encode(merge)
	return err == nil && len(text) > maxText
}
