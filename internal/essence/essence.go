// Package essence extracts from an object the part whose changes are handled.
//
// Two steps make an essence: [Build] takes from the object what matters to any
// operator, [Clean] removes what the storages of this one have left there.
package essence

import (
	"strings"

	"gopf.dev/gopf/internal/fieldpath"
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
	essence := make(map[string]any, len(body))
	for key, value := range body {
		switch key {
		case "apiVersion", "kind", "metadata", "status":
		default:
			essence[key] = fieldpath.Clone(value)
		}
	}
	if metadata, ok := body["metadata"].(map[string]any); ok {
		essence["metadata"] = buildMetadata(metadata)
	}
	for _, field := range fields {
		value, ok := fieldpath.Lookup(body, field...)
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
