package admission

import (
	"slices"
	"strings"

	"gopf.dev/gopf/diff"
)

// ours reports whether an entry belongs to this operator or to an earlier version of it.
// The name of the entry ends with that of the configuration.
func ours(e any, managed string) bool {
	entry, _ := e.(Entry)
	name, _ := entry["name"].(string)
	return strings.HasSuffix(name, "."+managed)
}

// merged returns the list of webhooks with ours replaced by the wanted ones. Other
// webhooks are preserved in their order.
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

// ownOf returns our webhooks, in the same order.
func ownOf(present []any, managed string) []any {
	var own []any
	for _, e := range present {
		if ours(e, managed) {
			own = append(own, e)
		}
	}
	return own
}

// asWanted reports whether our webhooks are as wanted.
func asWanted(present []any, wanted []Entry, managed string, mutating bool) bool {
	own := ownOf(present, managed)
	return slices.EqualFunc(own, wanted, func(there any, want Entry) bool {
		return diff.Equal(defaulted(there.(Entry), mutating), defaulted(want, mutating))
	})
}
