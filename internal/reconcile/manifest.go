package reconcile

import (
	"encoding/base64"
	"errors"
	"maps"

	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/childwatch"
	"gopf.dev/gopf/internal/essence"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/jsonvalue"
)

// mark adds the marks of the operator to the manifest of a child: its label, and the
// owner reference or annotation, and the digest of its content. It also computes the wave.
func (x *run) mark(w *handler.Wanted) error {
	if w.Fields == nil {
		return errors.New("the child has no manifest")
	}
	if err := w.Key.Problem(); err != nil {
		return err
	}
	for _, on := range w.DependsOn {
		w.Wave = max(w.Wave, on.Wave+1)
	}
	w.Outside = x.Owner.Namespace != "" && w.Namespace != x.Owner.Namespace
	fields := w.Fields // of this call alone; see [apiclient.Manifest]
	metadata := child(fields, "metadata")
	child(metadata, "labels")[childwatch.Label] = x.Name
	if w.Outside || w.Orphan {
		child(metadata, "annotations")[childwatch.OwnerAnnotation] = childwatch.OwnerText(x.Owner.Info, x.Owner.Identity, w.Orphan)
	} else {
		references, _ := metadata["ownerReferences"].([]any)
		if x.reference == nil {
			x.reference = map[string]any{
				"apiVersion": x.Owner.Info.APIVersion(), "kind": x.Owner.Info.Kind, "name": x.Owner.Name, "uid": x.Owner.UID,
				"controller": true, "blockOwnerDeletion": true,
			}
		}
		metadata["ownerReferences"] = append(references, x.reference)
	}
	secret := w.APIVersion == "v1" && w.Kind == "Secret"
	if secret {
		plainSecret(fields)
	}
	content := without(fields, w.Initial)
	if secret {
		// The digest is stored on the child and in the inventory on the owner, which has other
		// readers. The rest of the manifest is known, so values could be guessed from it.
		content = essence.Secrets{Key: x.SecretKey, UID: x.Owner.UID}.Hidden(content)
	}
	var err error
	if w.Digest, err = children.Digest(content); err != nil {
		return err
	}
	child(metadata, "annotations")[childwatch.DigestAnnotation] = children.DigestText(w.Digest)
	return nil
}

// plainSecret converts stringData to data. The API server would convert it as well, but
// would list the fields as those of stringData: changes of data would then not show.
func plainSecret(fields map[string]any) {
	texts, ok := fields["stringData"].(map[string]any)
	if !ok {
		return
	}
	data := child(fields, "data")
	for key, value := range texts {
		if text, ok := value.(string); ok {
			data[key] = base64.StdEncoding.EncodeToString([]byte(text))
		}
	}
	delete(fields, "stringData")
}

// child returns the object at a key, which it creates if necessary.
func child(of map[string]any, key string) map[string]any {
	at, ok := of[key].(map[string]any)
	if !ok {
		at = map[string]any{}
		of[key] = at
	}
	return at
}

// noVersion is a resource version that no object has. An apply with it creates the object,
// and fails with a conflict if the object exists: it cannot change an object of another
// owner.
const noVersion = "1"

// with returns the manifest with a precondition in its metadata: a uid or a resource
// version. An object that does not fulfill it is not changed.
func with(fields map[string]any, key, value string) map[string]any {
	fields = maps.Clone(fields)
	metadata := maps.Clone(fields["metadata"].(map[string]any))
	metadata[key] = value
	fields["metadata"] = metadata
	return fields
}

// without returns a copy of the manifest without the fields at the paths.
func without(fields map[string]any, paths [][]string) map[string]any {
	if len(paths) == 0 {
		return fields
	}
	fields = jsonvalue.Clone(fields).(map[string]any)
	for _, path := range paths {
		at := fields
		for _, key := range path[:len(path)-1] {
			at, _ = at[key].(map[string]any)
		}
		delete(at, path[len(path)-1])
	}
	return fields
}

// only returns a manifest with nothing but the identity and the fields at the paths.
func only(fields map[string]any, paths [][]string) map[string]any {
	metadata := map[string]any{}
	for _, key := range []string{"name", "namespace"} {
		if v, ok := jsonvalue.Lookup(fields, "metadata", key); ok {
			metadata[key] = v
		}
	}
	rest := map[string]any{"apiVersion": fields["apiVersion"], "kind": fields["kind"], "metadata": metadata}
	for _, path := range paths {
		v, ok := jsonvalue.Lookup(fields, path...)
		if !ok {
			continue
		}
		at := rest
		for _, key := range path[:len(path)-1] {
			at = child(at, key)
		}
		at[path[len(path)-1]] = v
	}
	return rest
}
