package object

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Packer compresses bodies of one resource that are kept for long. Objects of a resource
// resemble each other: bodies that were packed before are dictionaries for all others, which
// reduces them to their differences. The first packed body is one of them. Others follow if
// too many objects resemble none: see [dictionaries]. A Packer is safe for
// concurrent use. The zero value is ready for use.
type Packer struct {
	known  dictionaries
	shapes atomic.Pointer[[]*shape] // of the last bodies
	spares sync.Pool                // of *[]byte, each for a JSON with gaps
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
	// longestDeflated is the longest JSON that [Packer.PackWithout] deflates, which takes half a
	// millisecond. Inflating it takes as long.
	longestDeflated = 8 << 10
	// maxShapes limits the shapes that are known. Packed bodies keep theirs.
	maxShapes = 2 * maxDictionaries
	// largestBuffer is the largest buffer that is kept for the next object.
	largestBuffer = 64 << 10
)

// Pack compresses a body. It does not keep the body, nor its decoded values.
func (p *Packer) Pack(b *Body) *Packed { return p.pack(b, "", enough) }

// PackWithout is like [Packer.Pack], but leaves out a text of the JSON that the caller keeps
// anyway. [Packed.Body] needs it. It is for callers that read a watch, so it takes less than a
// millisecond: long bodies are left in S2.
func (p *Packer) PackWithout(b *Body, kept string) *Packed {
	if len(b.raw) > longestDeflated {
		return p.pack(b, kept, 1)
	}
	return p.pack(b, kept, enough)
}

// PackQuickly is like [Packer.Pack] for a body that is packed again after every turn: more
// objects are left in S2, which takes more memory than DEFLATE but a fraction of its time.
func (p *Packer) PackQuickly(b *Body) *Packed { return p.pack(b, "", enoughQuickly) }

// Identify returns a packed body that has only the identity. Its content must not be used.
func (p *Packer) Identify(b *Body) *Packed {
	h := headOf(b.Identity)
	h.stale, h.size, h.managed = b.stale, uint64(len(b.raw)), uint64(b.lacking)
	return &Packed{p.shape(b.Identity, nil), h.encode(nil)}
}

// PackSimilar compresses a body that resembles others. It takes a few microseconds. nil means
// that the body would become less than a third shorter.
func (p *Packer) PackSimilar(b *Body) *Packed {
	h := headOf(b.Identity)
	h.memory, h.managed, h.stale, h.parts = uint64(b.Memory()), uint64(b.lacking), b.stale, b.parts
	spare := p.spare()
	defer p.spares.Put(spare)
	raw := h.gaps.open(spare, b.raw, b.UID)
	d, data := p.known.compress(b.UID, raw)
	if float64(len(data)) > enoughQuickly*float64(len(raw)) {
		return nil
	}
	h.form, h.size = similar, uint64(len(raw))
	return &Packed{p.shape(b.Identity, d), h.encode(data)}
}

// pack compresses a body. limit is the part of its size that is good enough for S2. With 1, it is
// never deflated.
func (p *Packer) pack(b *Body, kept string, limit float64) *Packed {
	h := headOf(b.Identity)
	h.memory, h.managed, h.stale, h.parts = uint64(b.Memory()), uint64(b.lacking), b.stale, b.parts
	if len(b.raw) < smallestPacked {
		return &Packed{p.shape(b.Identity, nil), h.encode(b.raw)}
	}
	spare := p.spare()
	defer p.spares.Put(spare)
	raw := h.gaps.open(spare, b.raw, b.UID, kept)
	h.size = uint64(len(raw))
	d, data := p.known.compress(b.UID, raw)
	h.form = similar
	if limit < 1 && float64(len(data)) > limit*float64(len(raw)) {
		data, h.form = d.deflate(raw), deflated
	}
	if len(data) >= len(raw) {
		data, h.form = raw, plain
	}
	return &Packed{p.shape(b.Identity, d), h.encode(data)}
}

func (p *Packer) spare() *[]byte {
	if spare, _ := p.spares.Get().(*[]byte); spare != nil {
		return spare
	}
	return new([]byte)
}

// shape returns the shape of packed bodies with the type of the identity and the dictionary.
func (p *Packer) shape(id Identity, d *dictionary) *shape {
	for {
		known := p.shapes.Load()
		var all []*shape
		if known != nil {
			all = *known
		}
		for _, s := range all {
			if s.dictionary == d && s.kind == id.Kind && s.apiVersion == id.APIVersion {
				return s
			}
		}
		made := &shape{strings.Clone(id.APIVersion), strings.Clone(id.Kind), d}
		last := append(slices.Clone(all[max(0, len(all)-maxShapes+1):]), made)
		if p.shapes.CompareAndSwap(known, &last) {
			return made
		}
	}
}
