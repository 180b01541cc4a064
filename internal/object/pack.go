package object

import (
	"bytes"
	"compress/flate"
	"io"
	"sync"

	"github.com/klauspost/compress/s2"
)

// Packer compresses bodies of one resource that are kept for long. Objects of a resource
// resemble each other: the first packed body is the dictionary for all others, which
// reduces them to their differences. A Packer is safe for concurrent use. The zero value
// is ready for use.
type Packer struct {
	once       sync.Once
	dictionary []byte
	similar    *s2.Dict
	buffers    sync.Pool // of *[]byte
	writers    sync.Pool // of *flate.Writer; each takes about 1 MB
	readers    sync.Pool // of io.ReadCloser
}

// Packed is a body in compressed form. It can be unpacked only by the packer that packed
// it.
type Packed struct {
	Identity

	packer *Packer
	data   []byte
	size   int // of the JSON
	memory int
	parts  parts
	form   form
	stale  bool
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
	// largestBuffer is the largest buffer that is kept for the next object.
	largestBuffer = 64 << 10
)

// Pack compresses a body. It does not keep the body, nor its decoded values.
func (p *Packer) Pack(b *Body) *Packed {
	packed := &Packed{Identity: b.Identity, packer: p, data: b.raw, size: len(b.raw), memory: b.Memory(), parts: b.parts, stale: b.stale}
	if len(b.raw) < smallestPacked {
		return packed
	}
	p.once.Do(func() {
		p.dictionary = bytes.Clone(b.raw[:min(len(b.raw), largestDictionary)])
		p.similar = s2.MakeDict(p.dictionary, nil)
	})
	if data := p.compress(b.raw); float64(len(data)) <= enough*float64(len(b.raw)) {
		packed.data, packed.form = data, similar
	} else if data := p.deflate(b.raw); len(data) < len(b.raw) {
		packed.data, packed.form = data, deflated
	}
	return packed
}

// compress returns the data in S2, without spare capacity.
func (p *Packer) compress(raw []byte) []byte {
	buffer, _ := p.buffers.Get().(*[]byte)
	if buffer == nil {
		buffer = new([]byte)
	}
	*buffer = p.similar.Encode((*buffer)[:cap(*buffer)], raw)
	data := bytes.Clone(*buffer)
	if cap(*buffer) <= largestBuffer {
		p.buffers.Put(buffer)
	}
	return data
}

// deflate returns the data in DEFLATE, without spare capacity.
func (p *Packer) deflate(raw []byte) []byte {
	out := bytes.NewBuffer(make([]byte, 0, len(raw)/4))
	w, _ := p.writers.Get().(*flate.Writer)
	if w == nil {
		w, _ = flate.NewWriterDict(out, packLevel, p.dictionary) // it fails only for invalid levels
	} else {
		w.Reset(out)
	}
	_, err := w.Write(raw)
	if err == nil {
		err = w.Close()
	}
	p.writers.Put(w)
	if err != nil {
		panic(err) // a buffer accepts everything
	}
	return bytes.Clone(out.Bytes())
}

// Body returns the body.
func (k *Packed) Body() *Body {
	b := (&Body{Identity: k.Identity, raw: k.data, parts: k.parts, stale: k.stale}).taking(k.memory)
	switch k.form {
	case plain:
		return b
	case similar:
		raw, err := k.packer.similar.Decode(make([]byte, 0, k.size), k.data)
		if err != nil {
			panic(err) // the data is our own and in memory
		}
		b.raw = raw
		return b
	}
	r, _ := k.packer.readers.Get().(io.ReadCloser)
	if r == nil {
		r = flate.NewReaderDict(bytes.NewReader(k.data), k.packer.dictionary)
	} else if err := r.(flate.Resetter).Reset(bytes.NewReader(k.data), k.packer.dictionary); err != nil {
		panic(err) // it never fails
	}
	b.raw = make([]byte, k.size)
	if _, err := io.ReadFull(r, b.raw); err != nil {
		panic(err) // the data is our own and in memory
	}
	k.packer.readers.Put(r)
	return b
}

// Stale reports whether the body is older than its resource version: see [Body.At].
func (k *Packed) Stale() bool { return k.stale }

// Size returns the bytes that the packed JSON takes.
func (k *Packed) Size() int { return len(k.data) }
