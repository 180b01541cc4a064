package object

import (
	"bytes"
	"compress/flate"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/klauspost/compress/s2"
)

const (
	// maxDictionaries limits the dictionaries that are tried for an object, besides a
	// candidate.
	maxDictionaries = 3
	// closely is the part of its size to which a dictionary reduces an object that resembles
	// it. Objects with a larger remainder are misses.
	closely = 1. / 8
	// patience is the number of misses after which the first candidate is nominated. Another
	// object replaces it after twice as many, and so on up to patience<<maxPatience; then the
	// numbers start over. So two objects that resemble each other meet at some time, however
	// many odd ones come between them.
	patience    = 8
	maxPatience = 5
	// moreMisses is the factor by which each further dictionary needs more misses. So the
	// number of dictionaries that a hostile tenant can cause, all of which packed bodies may
	// retain, is logarithmic.
	moreMisses = 4
	// keen is the number of objects that are compared with candidates, if none resembles one.
	// After them, only a random one of rarely objects is compared: a comparison takes as long
	// as packing the object, and there are resources whose objects never resemble each other.
	keen   = 64
	rarely = 8
)

// dictionaries are the dictionaries of one resource.
//
// The first object may be an odd one, by chance or because a tenant wants others to take
// more memory. So from time to time, an object that resembles no dictionary becomes the
// candidate. If the next such object resembles the candidate, it becomes a dictionary, in
// place of the one that helped least.
type dictionaries struct {
	mu        sync.Mutex
	all       []*dictionary // the most helpful one first
	candidate *dictionary   // nil: none yet
	nominated int           // candidates since the last dictionary
	until     int           // the misses before the next candidate
	misses    int           // since the last dictionary
	unlike    int           // comparisons with candidates since the last dictionary
	limit     int           // the misses before the next dictionary
}

// dictionary is a body that packed bodies refer to.
type dictionary struct {
	raw     []byte
	similar *s2.Dict
	buffers sync.Pool // of *[]byte
	writers sync.Pool // of *flate.Writer; each takes about 1 MB
	readers sync.Pool // of io.ReadCloser
	uid     string    // of the object that it was
	helped  int       // objects that resemble it, and fewer the longer ago; guarded by dictionaries.mu
}

func newDictionary(uid string, raw []byte) *dictionary {
	raw = bytes.Clone(raw[:min(len(raw), largestDictionary)])
	return &dictionary{raw: raw, similar: s2.MakeDict(raw, nil), uid: uid}
}

// compress returns the data in S2, without spare capacity, and the dictionary for it.
func (k *dictionaries) compress(uid string, raw []byte) (best *dictionary, data []byte) {
	near := int(closely * float64(len(raw)))
	all, candidate := k.list(uid, raw)
	for _, d := range all {
		if shorter := d.compress(raw); best == nil || len(shorter) < len(data) {
			best, data = d, shorter
		}
		if len(data) <= near {
			k.hit(best)
			return best, data
		}
	}
	if candidate != nil {
		if shorter := candidate.compress(raw); len(shorter) <= near && k.elect(candidate) {
			return candidate, shorter
		}
	}
	k.miss(uid, raw, candidate != nil)
	return best, data
}

// list returns the dictionaries, of which there is at least one, and the candidate, if the
// object must be compared with it; nil means no comparison.
func (k *dictionaries) list(uid string, raw []byte) ([]*dictionary, *dictionary) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.all) == 0 {
		k.all, k.limit, k.until = []*dictionary{newDictionary(uid, raw)}, patience, patience
	}
	if k.candidate == nil || k.candidate.uid == uid || k.unlike >= keen && rand.IntN(rarely) > 0 { // an object resembles itself
		return k.all, nil
	}
	return k.all, k.candidate
}

// hit counts an object that resembles a dictionary.
func (k *dictionaries) hit(d *dictionary) {
	k.mu.Lock()
	defer k.mu.Unlock()
	d.helped++
	if at := slices.Index(k.all, d); at > 0 && k.all[at-1].helped < d.helped {
		k.all = slices.Clone(k.all) // others may read it
		k.all[at-1], k.all[at] = d, k.all[at-1]
	}
}

// miss counts an object that resembles no dictionary. It may become the candidate. compared
// reports whether it was compared with the former one.
func (k *dictionaries) miss(uid string, raw []byte, compared bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if compared {
		k.unlike++
	}
	if k.misses++; k.misses >= k.until {
		k.candidate = newDictionary(uid, raw)
		k.nominated++
		k.until = k.misses + patience<<(k.nominated%(maxPatience+1))
	}
}

// elect makes the candidate a dictionary, if there were enough misses.
func (k *dictionaries) elect(candidate *dictionary) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.candidate != candidate || k.misses < k.limit {
		return false
	}
	k.all = append(slices.Clone(k.all[:min(len(k.all), maxDictionaries-1)]), candidate)
	for _, d := range k.all {
		d.helped /= 2
	}
	k.candidate, k.nominated, k.until, k.misses, k.unlike = nil, 0, patience, 0, 0
	k.limit = min(k.limit*moreMisses, math.MaxInt/moreMisses)
	return true
}

// compress returns the data in S2, without spare capacity.
func (d *dictionary) compress(raw []byte) []byte {
	buffer, _ := d.buffers.Get().(*[]byte)
	if buffer == nil {
		buffer = new([]byte)
	}
	*buffer = d.similar.Encode((*buffer)[:cap(*buffer)], raw)
	data := bytes.Clone(*buffer)
	if cap(*buffer) <= largestBuffer {
		d.buffers.Put(buffer)
	}
	return data
}

// decode returns what [dictionary.compress] compressed, in a slice with enough capacity.
func (d *dictionary) decode(data, into []byte) []byte {
	raw, err := d.similar.Decode(into, data)
	if err != nil {
		panic(err) // the data is our own and in memory
	}
	return raw
}

// deflate returns the data in DEFLATE, without spare capacity.
func (d *dictionary) deflate(raw []byte) []byte {
	out := bytes.NewBuffer(make([]byte, 0, len(raw)/4))
	w, _ := d.writers.Get().(*flate.Writer)
	if w == nil {
		w, _ = flate.NewWriterDict(out, packLevel, d.raw) // it fails only for invalid levels
	} else {
		w.Reset(out)
	}
	_, err := w.Write(raw)
	if err == nil {
		err = w.Close()
	}
	d.writers.Put(w)
	if err != nil {
		panic(err) // a buffer accepts everything
	}
	return bytes.Clone(out.Bytes())
}

// inflate returns what [dictionary.deflate] compressed, in a slice of its length.
func (d *dictionary) inflate(data, into []byte) []byte {
	r, _ := d.readers.Get().(io.ReadCloser)
	if r == nil {
		r = flate.NewReaderDict(bytes.NewReader(data), d.raw)
	} else if err := r.(flate.Resetter).Reset(bytes.NewReader(data), d.raw); err != nil {
		panic(err) // it never fails
	}
	if _, err := io.ReadFull(r, into); err != nil {
		panic(err) // the data is our own and in memory
	}
	d.readers.Put(r)
	return into
}
