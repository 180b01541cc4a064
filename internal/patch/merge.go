package patch

import "gopf.dev/gopf/diff"

// Between is the merge patch that turns one decoded object into another. It
// is empty if they are equal.
func Between(before, after map[string]any) map[string]any {
	out := map[string]any{}
	for key, old := range before {
		if _, stays := after[key]; !stays && old != nil {
			out[key] = nil
		}
	}
	for key, now := range after {
		old, was := before[key]
		oldMap, isMap := old.(map[string]any)
		if nowMap, ok := now.(map[string]any); ok && isMap {
			if inner := Between(oldMap, nowMap); len(inner) > 0 {
				out[key] = inner
			}
			continue
		}
		if was && diff.Equal(old, now) {
			continue
		}
		if !was && now == nil {
			continue // a merge patch cannot add a null
		}
		out[key] = now
	}
	return out
}

// Apply makes the changes of a merge patch to decoded JSON, in place.
func Apply(fields, merge map[string]any) {
	for key, v := range merge {
		inner, ok := v.(map[string]any)
		switch {
		case v == nil:
			delete(fields, key)
		case !ok:
			fields[key] = v
		default:
			at, ok := fields[key].(map[string]any)
			if !ok {
				at = map[string]any{}
				fields[key] = at
			}
			Apply(at, inner)
		}
	}
}
