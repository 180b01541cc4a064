// Package essence extracts from an object the part whose changes are handled.
//
// Two steps make an essence: [Build] takes from the object what matters to any
// operator, [Clean] removes what the storages of this one have left there.
package essence

import (
	"strings"

	"gopf.dev/gopf/internal/fieldpath"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/storage"
)

// lastApplied is where kubectl keeps another copy of the whole object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Build returns the essence of the object: everything but its identity, status
// and metadata; of the latter, only labels and annotations, without those of
// kubectl and of operators. Fields of interest, which are those that handlers
// have asked for, are kept also if they are outside of that.
//
// The essence shares nothing with the body, which is not changed, and what is
// dropped is not copied.
func Build(body map[string]any, fields []fieldpath.Path) map[string]any {
	kept := make(map[string]any, len(body))
	for key, value := range body {
		if essential(key) {
			kept[key] = fieldpath.Clone(value)
		}
	}
	lookup := func(path ...string) (any, bool) { return fieldpath.Lookup(body, path...) }
	return complete(kept, lookup, fields)
}

// Of is the essence of an object of which nothing is decoded but what is kept.
func Of(b *object.Body, fields []fieldpath.Path) map[string]any {
	return complete(b.Members(essential), b.Lookup, fields)
}

// essential tells the members of objects that are kept as they are.
func essential(member string) bool {
	switch member {
	case "apiVersion", "kind", "metadata", "status":
		return false
	}
	return true
}

// complete adds the metadata and the fields of interest.
func complete(essence map[string]any, lookup func(path ...string) (any, bool), fields []fieldpath.Path) map[string]any {
	value, _ := lookup("metadata")
	if metadata, ok := value.(map[string]any); ok {
		essence["metadata"] = buildMetadata(metadata)
	}
	for _, field := range fields {
		value, ok := lookup(field...)
		if !ok || len(field) == 0 {
			continue
		}
		// It cannot be blocked: in the body the same parents are objects.
		_ = fieldpath.Set(essence, fieldpath.Clone(value), field...)
	}
	storage.Tidy(essence)
	return essence
}

// Clean removes from a new essence the traces of both storages. An essence that
// was loaded from the base needs only the Clean of progress, in case that it
// was saved when the storages were others.
func Clean(o storage.Object, essence map[string]any, base storage.Base, progress storage.Progress) {
	if cleaner, ok := base.(storage.ObjectCleaner); ok {
		cleaner.CleanObject(o, essence)
	} else {
		base.Clean(essence)
	}
	progress.Clean(essence)
}

func buildMetadata(metadata map[string]any) map[string]any {
	built := make(map[string]any, 2)
	if labels, ok := metadata["labels"]; ok {
		built["labels"] = fieldpath.Clone(labels)
	}
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		return built
	}
	managed := managedPrefixes(annotations)
	kept := make(map[string]any, len(annotations))
	for key, value := range annotations {
		prefix, _, ok := strings.Cut(key, "/")
		if key != lastApplied && (!ok || !managed[prefix]) {
			kept[key] = fieldpath.Clone(value)
		}
	}
	built["annotations"] = kept
	return built
}

// managedPrefixes finds the prefixes of annotations that belong to operators,
// those of other operators included: what these note down must not wake us,
// nor what we do them.
func managedPrefixes(annotations map[string]any) map[string]bool {
	managed := make(map[string]bool)
	for key := range annotations {
		prefix, name, ok := strings.Cut(key, "/")
		if !ok {
			continue
		}
		if name == "kopf-managed" || prefix == storage.DefaultPrefix || strings.HasSuffix(prefix, "."+storage.DefaultPrefix) {
			managed[prefix] = true
		}
	}
	return managed
}
