package object

import (
	"bytes"
	"hash/fnv"
)

// SameContent reports whether two versions of an object differ in nothing but the resource
// version and managedFields. It decodes nothing: API servers write equal objects as equal
// texts. If another program wrote one of them, it may return false although they are equal.
func (b *Body) SameContent(as *Body) bool {
	head, tail := b.content()
	otherHead, otherTail := as.content()
	return bytes.Equal(head, otherHead) && bytes.Equal(tail, otherTail)
}

// ContentHash returns a hash of the texts that [Body.SameContent] compares.
func (b *Body) ContentHash() uint64 {
	head, tail := b.content()
	h := fnv.New64a()
	_, _ = h.Write(head) // a hash never fails
	_, _ = h.Write([]byte{0})
	_, _ = h.Write(tail)
	return h.Sum64()
}

// content returns the JSON before and after the resource version, without managedFields.
func (b *Body) content() (head, tail []byte) {
	plain := b.WithoutManagedFields()
	metadata, ok := plain.Metadata()
	if !ok {
		return plain.raw, nil
	}
	from, to := version(metadata, b.ResourceVersion)
	if from < 0 {
		return plain.raw, nil
	}
	at := plain.parts.metadata.from
	return plain.raw[:at+from], plain.raw[at+to:]
}

// version returns the position of the resource version in the JSON of the metadata; -1 means
// that it was not found. It may be that of an annotation with the same name and value. Then
// the version stays, and the texts of two versions differ.
func version(metadata []byte, value string) (from, to int) {
	const name = `"resourceVersion"`
	for from = 0; ; from++ {
		next := bytes.Index(metadata[from:], []byte(name))
		if next < 0 {
			return -1, -1
		}
		from += next
		rest := bytes.TrimLeft(metadata[from+len(name):], ": ")
		if bytes.HasPrefix(rest, []byte(`"`+value+`"`)) {
			return from, len(metadata) - len(rest) + len(value) + 2
		}
	}
}
