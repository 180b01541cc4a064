package deploy

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Patches reads the patches in a folder, in the order of the file names. The folder
// may be missing.
func Patches(folder string) (all []map[string]any, err error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	slices.Sort(paths)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		docs, err := Decode(text)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		for _, d := range docs {
			if meta, _ := d["metadata"].(object); d["kind"] == nil || meta["name"] == nil {
				return nil, fmt.Errorf("read %s: a patch needs apiVersion, kind and metadata.name", path)
			}
		}
		all = append(all, docs...)
	}
	return all, nil
}

// Decode reads the documents of a YAML file, without empty ones.
func Decode(text []byte) (all []map[string]any, err error) {
	for _, doc := range strings.Split("\n"+string(text), "\n---") {
		var o object
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			return nil, err
		}
		if len(o) > 0 {
			all = append(all, o)
		}
	}
	return all, nil
}

// samePlace reports whether the patch is for the object.
func samePlace(o, patch object) bool {
	return o["apiVersion"] == patch["apiVersion"] && title(o) == title(patch)
}

// merge merges a patch into a value. Objects are merged by their keys, and null removes a
// key. Lists of objects with names are merged by name, as the API server does for most
// lists, and the item {name: x, $patch: delete} removes one. Any other list is replaced.
func merge(value, patch any) any {
	switch p := patch.(type) {
	case object:
		v, isObject := value.(object)
		if !isObject {
			v = object{}
		}
		merged := maps.Clone(v)
		for key, change := range p {
			if change == nil {
				delete(merged, key)
				continue
			}
			merged[key] = merge(v[key], change)
		}
		return merged
	case list:
		if v, isList := value.(list); isList && named(v) && named(p) {
			return mergeNamed(v, p)
		}
	}
	return patch
}

// named reports whether all items are objects with names.
func named(all list) bool {
	return !slices.ContainsFunc(all, func(item any) bool {
		o, _ := item.(object)
		_, ok := o["name"].(string)
		return !ok
	})
}

func mergeNamed(all, patches list) list {
	merged := slices.Clone(all)
	for _, p := range patches {
		patch := p.(object)
		at := slices.IndexFunc(merged, func(item any) bool { return item.(object)["name"] == patch["name"] })
		switch {
		case patch["$patch"] == "delete" && at >= 0:
			merged = slices.Delete(merged, at, at+1)
		case patch["$patch"] == "delete":
		case at >= 0:
			merged[at] = merge(merged[at], patch)
		default:
			merged = append(merged, patch)
		}
	}
	return merged
}
