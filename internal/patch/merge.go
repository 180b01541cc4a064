package patch

import "gopf.dev/gopf/diff"

// Between returns the merge patch that turns one decoded object into another. It is
// empty if they are equal. A merge patch cannot add a null, so such a difference is
// ignored.
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
			continue
		}
		out[key] = now
	}
	return out
}

// Apply applies a merge patch to decoded JSON, in place.
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

// Inverse returns the merge patch that undoes merge: each field gets the value that it
// has in before. Fields that no longer have the value of merge are not touched, because
// they were changed since.
func Inverse(merge, before, now map[string]any) map[string]any {
	out := map[string]any{}
	for key, v := range merge {
		inner, isMap := v.(map[string]any)
		old, was := before[key]
		current, is := now[key]
		currentMap, nowMap := current.(map[string]any)
		if isMap && nowMap {
			oldMap, _ := old.(map[string]any)
			if undone := Inverse(inner, oldMap, currentMap); len(undone) > 0 {
				out[key] = undone
			}
			continue
		}
		same := v == nil && !is || v != nil && is && diff.Equal(v, current)
		switch {
		case !same || was && is && diff.Equal(old, current) || !was && !is:
		case was:
			out[key] = old
		default:
			out[key] = nil
		}
	}
	return out
}

// Minus returns a merge patch without the fields that another one has.
func Minus(merge, other map[string]any) map[string]any {
	out := map[string]any{}
	for key, v := range merge {
		has, both := other[key]
		inner, isMap := v.(map[string]any)
		otherMap, otherIsMap := has.(map[string]any)
		switch {
		case !both:
			out[key] = v
		case isMap && otherIsMap:
			if rest := Minus(inner, otherMap); len(rest) > 0 {
				out[key] = rest
			}
		}
	}
	return out
}
