// Package essence extracts the essence of an object: the part whose changes are handled.
//
// This takes two steps: [Build] or [Of] extracts the fields that matter to every
// operator, and [Clean] removes the traces of this operator's storages.
package essence

import (
	"strings"

	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/pause"
	"gopf.dev/gopf/storage"
)

// lastApplied is the annotation in which kubectl stores a copy of the object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Build returns the essence of a decoded object. It consists of all members except
// apiVersion, kind, metadata and status. Of the metadata, it has labels and annotations,
// without the annotations of kubectl and of operators, and without the one that pauses
// the object. It also has the given fields,
// for which handlers are declared, wherever they are.
//
// The essence shares no values with the body, and the body is not modified. Members
// outside of the essence are not copied.
func Build(body map[string]any, fields []jsonvalue.Path) map[string]any {
	kept := make(map[string]any, len(body))
	for key, value := range body {
		if essential(key) {
			kept[key] = jsonvalue.Clone(value)
		}
	}
	lookup := func(path ...string) (any, bool) { return jsonvalue.Lookup(body, path...) }
	return complete(kept, lookup, fields)
}

// Of returns the same essence as [Build], but decodes only the necessary members.
func Of(b *object.Body, fields []jsonvalue.Path) map[string]any {
	return complete(b.Members(essential), b.Lookup, fields)
}

// essential reports whether a member of an object belongs to the essence as it is.
func essential(member string) bool {
	switch member {
	case "apiVersion", "kind", "metadata", "status":
		return false
	}
	return true
}

// complete adds the metadata and the given fields to the essence.
func complete(essence map[string]any, lookup func(path ...string) (any, bool), fields []jsonvalue.Path) map[string]any {
	value, _ := lookup("metadata")
	if metadata, ok := value.(map[string]any); ok {
		essence["metadata"] = buildMetadata(metadata)
	}
	for _, field := range fields {
		value, ok := lookup(field...)
		if !ok || len(field) == 0 {
			continue
		}
		// Set cannot fail: in the body, the same parents are objects.
		_ = jsonvalue.Set(essence, jsonvalue.Clone(value), field...)
	}
	storage.Tidy(essence)
	return essence
}

// Clean removes the traces of both storages from a new essence. An essence from the base
// needs only progress.Clean, in case it was saved with another storage.
func Clean(o storage.Object, essence map[string]any, base storage.Base, progress storage.Progress) {
	if cleaner, ok := base.(storage.ObjectCleaner); ok {
		cleaner.CleanObject(o, essence)
	} else {
		base.Clean(essence)
	}
	progress.Clean(essence)
}

// CleanBase removes the annotation that pauses an object from a base. Kopf stores it there,
// because it does not know its meaning.
func CleanBase(base map[string]any) {
	value, _ := jsonvalue.Lookup(base, "metadata", "annotations")
	annotations, _ := value.(map[string]any)
	if _, ok := annotations[pause.Key]; ok {
		delete(annotations, pause.Key)
		storage.Tidy(base)
	}
}

// buildMetadata returns the labels, and the annotations that belong to no operator and
// not to kubectl.
func buildMetadata(metadata map[string]any) map[string]any {
	built := make(map[string]any, 2) //mutate:skip the capacity only saves memory
	if labels, ok := metadata["labels"]; ok {
		built["labels"] = jsonvalue.Clone(labels)
	}
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		return built
	}
	managed := managedPrefixes(annotations)
	kept := make(map[string]any, len(annotations))
	for key, value := range annotations {
		prefix, _, ok := strings.Cut(key, "/")
		if key != lastApplied && key != pause.Key && (!ok || !managed[prefix]) {
			kept[key] = jsonvalue.Clone(value)
		}
	}
	built["annotations"] = kept
	return built
}

// managedPrefixes returns the prefixes of annotations that belong to operators,
// including other operators. Their records must not look like changes to each other.
func managedPrefixes(annotations map[string]any) map[string]bool {
	managed := make(map[string]bool)
	for key := range annotations {
		prefix, name, _ := strings.Cut(key, "/")
		if name == "kopf-managed" || prefix == storage.DefaultPrefix || strings.HasSuffix(prefix, "."+storage.DefaultPrefix) {
			managed[prefix] = true
		}
	}
	return managed
}
