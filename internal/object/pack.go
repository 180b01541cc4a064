package object

import "sync/atomic"

// Packer compresses bodies of one resource that are kept for long. Objects of a resource
// resemble each other: bodies that were packed before are dictionaries for all others, which
// reduces them to their differences. The first packed body is one of them. Others follow if
// too many objects resemble none: see [dictionaries]. A Packer is safe for
// concurrent use. The zero value is ready for use.
type Packer struct {
	known dictionaries
	typed atomic.Pointer[typeName] // of the last body
}

// form is the form of packed data.
type form uint8

const (
	plain    form = iota // the JSON itself
	similar              // S2: many times faster than DEFLATE, good if the object resembles the dictionary
	deflated             // DEFLATE: for other objects
)

const (
	// largestDictionary is the longest dictionary that DEFLATE can use.
	largestDictionary = 32 << 10
	// smallestPacked is the size of the smallest JSON that is compressed.
	smallestPacked = 256
	// packLevel is the fastest level of package flate that uses a dictionary well.
	packLevel = 4
	// enough is the part of its size to which S2 must reduce an object. Otherwise, DEFLATE
	// is worth its time.
	enough = 1. / 3
	// enoughQuickly is the same for [Packer.PackQuickly].
	enoughQuickly = 2. / 3
	// largestBuffer is the largest buffer that is kept for the next object.
	largestBuffer = 64 << 10
)

// Pack compresses a body. It does not keep the body, nor its decoded values.
func (p *Packer) Pack(b *Body) *Packed { return p.pack(b, enough) }

// PackQuickly is like [Packer.Pack] for a body that is packed again after every turn: more
// objects are left in S2, which takes more memory than DEFLATE but a fraction of its time.
func (p *Packer) PackQuickly(b *Body) *Packed { return p.pack(b, enoughQuickly) }

// pack compresses a body. limit is the part of its size that is good enough for S2.
func (p *Packer) pack(b *Body, limit float64) *Packed {
	packed := p.identify(b.Identity)
	packed.data, packed.size, packed.memory, packed.stale = b.raw, uint32(len(b.raw)), b.Memory(), b.stale
	packed.parts = [2]narrow{narrowed(b.parts.metadata), narrowed(b.parts.status)}
	if len(b.raw) < smallestPacked {
		return packed
	}
	d, data := p.known.compress(b.UID, b.raw)
	if float64(len(data)) <= limit*float64(len(b.raw)) {
		packed.dictionary, packed.data, packed.form = d, data, similar
	} else if data := d.deflate(b.raw); len(data) < len(b.raw) {
		packed.dictionary, packed.data, packed.form = d, data, deflated
	}
	return packed
}
