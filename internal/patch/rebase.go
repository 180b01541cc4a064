package patch

import (
	"crypto/sha256"
	"slices"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/jsonvalue"
)

// Rebase returns raw with the differences between before and after. before is the part of
// raw that a Go type has. Fields that the type lacks stay, in list items as well: an item
// of after that equals an item of before is that item of raw, and one with the same name,
// or else at the same position of a list of the same length, is a changed version of it.
// Zero values that only the type adds stay out of it.
//
// Lists in more than 16 other lists are replaced as a whole: each level compares all below it.
func Rebase(raw, before, after any) any { return rebase(raw, before, after, 16) }

func rebase(raw, before, after any, lists int) any {
	switch after := after.(type) {
	case map[string]any:
		if whole, ok := raw.(map[string]any); ok {
			old, _ := before.(map[string]any)
			return rebaseFields(whole, old, after, lists)
		}
	case []any:
		whole, isList := raw.([]any)
		old, wasList := before.([]any)
		if lists > 0 && isList && wasList && len(whole) == len(old) && !diff.Equal(before, after) {
			return rebaseItems(whole, old, after, lists-1)
		}
	}
	if diff.Equal(before, after) {
		return raw
	}
	return after
}

func rebaseFields(raw, before, after map[string]any, lists int) map[string]any {
	out := make(map[string]any, len(raw))
	for key, value := range raw {
		_, was := before[key]
		if _, stays := after[key]; stays || !was {
			out[key] = value
		}
	}
	for key, value := range after {
		old, was := before[key]
		whole, there := raw[key]
		if _, isMap := value.(map[string]any); isMap && was && !there {
			whole = map[string]any{} // the type adds zero values, as for all fields that raw lacks
		}
		switch {
		case !was:
			out[key] = value
		case there || !diff.Equal(old, value):
			out[key] = rebase(whole, old, value, lists)
		}
	}
	return out
}

func rebaseItems(raw, before, after []any, lists int) []any {
	from := sources(before, after)
	out := make([]any, len(after))
	for i := range after {
		if out[i] = after[i]; from[i] >= 0 {
			out[i] = rebase(raw[from[i]], before[from[i]], after[i], lists)
		}
	}
	return out
}

// sources returns for each item of after the item of before that it comes from, or -1. Lists may
// have thousands of items, so they are not compared with each other.
func sources(before, after []any) (from []int) {
	used := make([]bool, len(before))
	from = slices.Repeat([]int{-1}, len(after))
	match := func(key func(item any) string) {
		waiting := map[string][]int{}
		for j, item := range before {
			if k := key(item); k != "" && !used[j] {
				waiting[k] = append(waiting[k], j)
			}
		}
		for i, item := range after {
			if from[i] >= 0 {
				continue
			}
			if k := key(item); len(waiting[k]) > 0 {
				from[i] = waiting[k][0]
				used[from[i]], waiting[k] = true, waiting[k][1:]
			}
		}
	}
	match(digestOf)
	match(nameOf)
	for i := range after {
		if from[i] < 0 && len(after) == len(before) && !used[i] && nameOf(after[i]) == "" && nameOf(before[i]) == "" {
			from[i], used[i] = i, true
		}
	}
	return from
}

// digestOf returns the same text for equal list items, and only for those.
func digestOf(item any) string {
	raw, err := jsonvalue.Encode(item)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	return string(sum[:])
}

// nameOf returns the name of a list item, such as a container. "" means that it has none.
func nameOf(item any) string {
	fields, _ := item.(map[string]any)
	name, _ := fields["name"].(string)
	return name
}
