package essence

import (
	"bytes"
	"slices"

	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/object"
)

// Same reports, from their bytes alone, that two versions of an object have the same
// essence. False means unknown: compare their essences. Fields outside of the essence, for
// which handlers may be declared, are not compared.
func Same(a, b *object.Body) bool {
	return slices.EqualFunc(essentials(a), essentials(b), bytes.Equal)
}

// essentials returns the names and the JSON of all fields that the essence is made from:
// those of the object, an empty text, and those of the metadata. Without the empty text, a
// member with the name "annotations" could be taken for the annotations.
func essentials(b *object.Body) [][]byte {
	fields := make([][]byte, 0, 8) //mutate:skip the capacity only saves memory
	read := func(text []byte, wanted func(name string) bool) {
		r := jsonvalue.Read(text)
		defer r.Close()
		if r.PeekKind() != '{' {
			return
		}
		_ = r.Each(func(name []byte) error { // cannot fail: the object has been scanned
			if !wanted(string(name)) {
				return r.SkipValue()
			}
			fields = append(fields, bytes.Clone(name))
			value, err := r.ReadValue()
			end := int(r.InputOffset())
			fields = append(fields, text[end-len(value):end])
			return err
		})
	}
	read(b.Raw(), essential)
	fields = append(fields, nil)
	if metadata, ok := b.Metadata(); ok {
		read(metadata, func(name string) bool {
			return name == "labels" || name == "annotations" || name == "ownerReferences" // storages look at the owner of a ReplicaSet
		})
	}
	return fields
}
