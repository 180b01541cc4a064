package admission

import (
	"slices"
	"strings"

	"gopf.dev/gopf/diff"
)

// ours tells whether an entry was made by this operator, also by an earlier
// version of it with other handlers: by the end of its name.
func ours(e any, managed string) bool {
	entry, _ := e.(Entry)
	name, _ := entry["name"].(string)
	return strings.HasSuffix(name, "."+managed)
}

// merged is a configuration's list of webhooks with ours as they should be. Those
// of others stay as and where they are.
func merged(present []any, wanted []Entry, managed string) []any {
	at := slices.IndexFunc(present, func(e any) bool { return ours(e, managed) })
	if at < 0 {
		at = len(present)
	}
	all := slices.Clone(present[:at])
	for _, e := range wanted {
		all = append(all, e)
	}
	for _, e := range present[at:] {
		if !ours(e, managed) {
			all = append(all, e)
		}
	}
	return all
}

// ownOf are those of the webhooks that are ours, in their order.
func ownOf(present []any, managed string) []any {
	var own []any
	for _, e := range present {
		if ours(e, managed) {
			own = append(own, e)
		}
	}
	return own
}

// asWanted tells whether our webhooks need no writing.
func asWanted(present []any, wanted []Entry, managed string, mutating bool) bool {
	own := ownOf(present, managed)
	return slices.EqualFunc(own, wanted, func(there any, want Entry) bool {
		return diff.Equal(defaulted(there.(Entry), mutating), defaulted(want, mutating))
	})
}
