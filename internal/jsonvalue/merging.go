package jsonvalue

import (
	"bytes"
	"slices"
)

// Merging returns the merge patch that turns the first JSON object into the second one. It decodes
// only the members that differ in their bytes, so it is for texts of the same encoder: values that
// are equal, but written in another way, are in the patch. Where a list replaces another one,
// replace returns the value; it may keep the path.
func Merging(from, to []byte, replace func(path []string, old, new []any) any) (merge map[string]any, err error) {
	return merging(nil, from, to, replace)
}

func merging(path []string, from, to []byte, replace func(path []string, old, new []any) any) (merge map[string]any, err error) {
	was, err := members(from)
	if err != nil {
		return nil, err
	}
	is, err := members(to)
	if err != nil {
		return nil, err
	}
	merge = map[string]any{}
	for name, old := range was {
		if _, stays := is[name]; !stays && !isNull(old) {
			merge[name] = nil
		}
	}
	for name, now := range is {
		old, both := was[name]
		switch {
		case both && bytes.Equal(old, now), !both && isNull(now):
		case both && isObject(old) && isObject(now):
			inner, err := merging(append(slices.Clip(path), name), old, now, replace)
			if err != nil {
				return nil, err
			}
			if len(inner) > 0 {
				merge[name] = inner
			}
		default:
			if merge[name], err = Decode(now); err != nil {
				return nil, err
			}
			list, isList := merge[name].([]any)
			if !isList || !both {
				break
			}
			before, err := Decode(old)
			if err != nil {
				return nil, err
			}
			if former, wasList := before.([]any); wasList {
				merge[name] = replace(append(slices.Clip(path), name), former, list)
			}
		}
	}
	return merge, nil
}

func isNull(text []byte) bool { return bytes.Equal(bytes.TrimSpace(text), []byte("null")) }
