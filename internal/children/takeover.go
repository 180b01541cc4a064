package children

import (
	"maps"
	"slices"
)

// FieldEntry is a whole entry of metadata.managedFields, as decoded JSON.
type FieldEntry = map[string]any

// formerClients are clients that manage the whole manifest of an object. An object that
// is adopted was usually created by one of them.
var formerClients = []string{"kubectl-client-side-apply", "kubectl-create", "kubectl-replace", "helm", "before-first-apply"}

// TakeOver returns the entries after manager has taken over all the fields of the former
// managers of a child of the owner: those that set the owner reference, and manager
// itself if it has written without server-side apply. Fields that the next apply omits are
// then removed. changed is false if there is nothing to take over. Entries of other API
// versions stay as they are.
func TakeOver(entries []FieldEntry, manager, apiVersion, owner string) (after []FieldEntry, changed bool) {
	own := FieldEntry{"manager": manager, "operation": "Apply", "apiVersion": apiVersion, "fieldsType": "FieldsV1"}
	fields, found := map[string]any{}, false
	for _, e := range entries {
		set, _ := e["fieldsV1"].(map[string]any)
		switch {
		case e["subresource"] != nil || e["apiVersion"] != apiVersion:
			if e["manager"] == manager && e["operation"] == "Apply" {
				return entries, false // an applier has one entry: it cannot be of two versions
			}
			after = append(after, e)
		case e["manager"] == manager && e["operation"] == "Apply":
			own, fields = maps.Clone(e), union(fields, set)
		case e["manager"] == manager || ownsReference(set, owner):
			fields, found = union(fields, set), true
			if own["time"] == nil {
				own["time"] = e["time"]
			}
		default:
			after = append(after, e)
		}
	}
	if !found {
		return entries, false
	}
	own["fieldsV1"] = fields
	return append(after, own), true
}

// Release returns the entries after clients that manage whole manifests, such as kubectl
// and Helm, have lost the fields that manager has applied. Their other fields stay theirs.
// changed is false if they share no field with manager.
func Release(entries []FieldEntry, manager string) (after []FieldEntry, changed bool) {
	i := slices.IndexFunc(entries, func(e FieldEntry) bool { return e["manager"] == manager && e["operation"] == "Apply" })
	if i < 0 {
		return entries, false
	}
	ours, _ := entries[i]["fieldsV1"].(map[string]any)
	for _, e := range entries {
		name, _ := e["manager"].(string)
		whole := slices.Contains(formerClients, name) || name == "kubectl" && e["operation"] == "Apply"
		set, _ := e["fieldsV1"].(map[string]any)
		if !whole || e["subresource"] != nil || e["apiVersion"] != entries[i]["apiVersion"] {
			after = append(after, e)
			continue
		}
		rest := difference(set, ours)
		if len(rest) == len(set) && equalSets(rest, set) {
			after = append(after, e)
			continue
		}
		changed = true
		if len(rest) > 0 {
			e = maps.Clone(e)
			e["fieldsV1"] = rest
			after = append(after, e)
		}
	}
	return after, changed
}

// ownsReference reports whether a set of fields includes the reference to an owner.
func ownsReference(set map[string]any, owner string) bool {
	metadata, _ := set["f:metadata"].(map[string]any)
	references, _ := metadata["f:ownerReferences"].(map[string]any)
	return references[`k:{"uid":"`+owner+`"}`] != nil
}

// A set of fields has a key for each field, item or value. The key "." stands for the
// container itself. An empty set as a value is a field without parts.

// union returns the fields in a or b.
func union(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]any{}
	}
	for key, part := range b {
		of, _ := part.(map[string]any)
		before, _ := all[key].(map[string]any)
		all[key] = union(before, of)
	}
	return all
}

// difference returns the fields of a that are not in b.
func difference(a, b map[string]any) map[string]any {
	rest := map[string]any{}
	for key, part := range a {
		of, _ := part.(map[string]any)
		taken, both := b[key].(map[string]any)
		if !both {
			rest[key] = part
			continue
		}
		if left := difference(of, taken); len(left) > 0 {
			rest[key] = left
		}
	}
	return rest
}

func equalSets(a, b map[string]any) bool {
	return len(difference(a, b)) == 0 && len(difference(b, a)) == 0
}

// Contested returns the paths of the desired fields that a client owns and the operator
// does not, such as "spec.replicas". theirs and ours are sets of fields. A list counts as
// one field.
func Contested(desired map[string]any, theirs, ours map[string]any) (paths []string) {
	for _, key := range slices.Sorted(maps.Keys(desired)) {
		their, ok := theirs["f:"+key].(map[string]any)
		if !ok {
			continue
		}
		our, owned := ours["f:"+key].(map[string]any)
		if below, ok := desired[key].(map[string]any); ok && len(below) > 0 {
			for _, path := range Contested(below, their, our) {
				paths = append(paths, key+"."+path)
			}
		} else if !owned || len(difference(their, our)) > 0 {
			paths = append(paths, key)
		}
	}
	return paths
}
