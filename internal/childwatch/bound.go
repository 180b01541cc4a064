package childwatch

import "gopf.dev/gopf/internal/object"

// Every client that may create objects of the kind of a child can give them the label of
// children. So the memory for their content is limited.
const (
	// largeChild is the size of a compressed child from which on it counts as large.
	largeChild = 16 << 10
	// maxLarge is the limit for the compressed content of all large children in a namespace.
	// Of those beyond it, only the metadata is kept.
	maxLarge = 4 << 20
	// hugeChild is the size of the JSON from which on only the metadata of a child is kept.
	// Compressing it and comparing it with the former version take up to a millisecond for this
	// size, and all other children of the kind wait meanwhile.
	hugeChild = 64 << 10
	// hugeStatus is the size of the JSON of a status from which on only its small parts are
	// decoded. If they are too many, or the conditions are no small part, the child is not ready.
	hugeStatus = 256 << 10
	// smallPart is the limit for the JSON of such a part, and smallParts for all of them.
	smallPart, smallParts = 16 << 10, 64 << 10
	// longestText is the limit in bytes of each text that is kept in addition to the content.
	// Longer ones are cut. The marks of the operator itself are shorter.
	longestText = 1 << 10
)

// bounded returns the child, without its content if there is no room for it. It counts the
// child.
func (s *Store) bounded(c *Child) *Child {
	if size := c.packed.Size(); !c.hollow && size >= largeChild && s.large[c.Namespace]+size > maxLarge {
		return c.WithoutContent()
	}
	s.count(c.packed, 1)
	return c
}

// count adds the size of a child to that of its namespace, or subtracts it.
func (s *Store) count(packed *object.Packed, sign int) {
	size := packed.Size()
	if size < largeChild {
		return
	}
	namespace, _ := packed.Names()
	if s.large[namespace] += sign * size; s.large[namespace] == 0 {
		delete(s.large, namespace)
	}
}

// WithoutContent returns the child as it is kept without its content.
func (c *Child) WithoutContent() *Child {
	without := *c
	without.packed, without.hollow = c.packed.Hollow(), true
	return &without
}
