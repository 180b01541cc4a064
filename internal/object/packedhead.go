package object

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
)

// head is the decoded text of a packed body.
type head struct {
	namespace, name string
	uid             packedUID
	version         string // the resource version, unless it has a number
	number          uint64 // the resource version; 0 means that it is not a decimal number
	size            uint64 // of the JSON without the gaps
	memory          uint64
	managed         uint64 // the size of the managedFields, which the JSON does not have
	parts           parts
	gaps            gaps
	form            form
	stale, deleting bool
	data            string
}

// The flags in the first byte of the text. The form takes the lowest bits.
const (
	formMask     = 1<<2 - 1
	staleFlag    = 1 << 2
	deletingFlag = 1 << 3
	shortFlag    = 1 << 4 // the uid is short
)

// headOf returns the head of a body without content.
func headOf(id Identity) head {
	h := head{namespace: id.Namespace, name: id.Name, uid: shortUID(id.UID), deleting: id.Deleting}
	var decimal bool
	if h.number, decimal = Decimal(id.ResourceVersion); !decimal {
		h.version = id.ResourceVersion
	}
	return h
}

// encode returns the text from which [Packed.head] returns the same head with the data.
func (h *head) encode(data []byte) string {
	flags := byte(h.form)
	if h.stale {
		flags |= staleFlag
	}
	if h.deleting {
		flags |= deletingFlag
	}
	uid := h.uid.text
	if h.uid.isShort {
		flags |= shortFlag
		uid = string(h.uid.short[:])
	}
	var buffer [1 + 14*binary.MaxVarintLen64]byte
	prefix := append(buffer[:0], flags)
	for _, n := range [...]uint64{
		uint64(len(h.namespace)), uint64(len(h.name)), uint64(len(uid)), uint64(len(h.version)), h.number, h.size, h.memory,
		uint64(h.parts.metadata.from), uint64(h.parts.metadata.to), uint64(h.parts.status.from), uint64(h.parts.status.to),
		h.gaps[0], h.gaps[1], h.managed,
	} {
		prefix = binary.AppendUvarint(prefix, n)
	}
	var b strings.Builder
	b.Grow(len(prefix) + len(h.namespace) + len(h.name) + len(uid) + len(h.version) + len(data))
	b.Write(prefix)
	for _, text := range [...]string{h.namespace, h.name, uid, h.version} {
		b.WriteString(text)
	}
	b.Write(data)
	return b.String()
}

func (k *Packed) head() (h head) {
	flags := k.text[0]
	h.form, h.stale, h.deleting = form(flags&formMask), flags&staleFlag != 0, flags&deletingFlag != 0
	var n [14]uint64
	rest := k.text[1:]
	for i := range n {
		n[i], rest = uvarint(rest)
	}
	h.number, h.size, h.memory = n[4], n[5], n[6]
	h.parts = parts{span{int(n[7]), int(n[8])}, span{int(n[9]), int(n[10])}}
	h.gaps, h.managed = gaps{n[11], n[12]}, n[13]
	h.namespace, rest = rest[:n[0]], rest[n[0]:]
	h.name, rest = rest[:n[1]], rest[n[1]:]
	if flags&shortFlag != 0 {
		h.uid.isShort = true
		copy(h.uid.short[:], rest)
	} else {
		h.uid.text = rest[:n[2]]
	}
	h.version, h.data = rest[n[2]:n[2]+n[3]], rest[n[2]+n[3]:]
	return h
}

// uvarint is [binary.Uvarint] for a text that begins with a valid number. It also returns
// the rest of the text.
func uvarint(text string) (n uint64, rest string) {
	for i, shift := 0, 0; ; i, shift = i+1, shift+7 {
		n |= uint64(text[i]&0x7f) << shift
		if text[i] < 0x80 {
			return n, text[i+1:]
		}
	}
}

// packedUID is a uid in little memory. Equal uids are equal as packedUID.
type packedUID struct {
	short   [16]byte // of a UUID as API servers write it
	isShort bool
	text    string // of other uids
}

// dashes are the positions of the dashes in a UUID.
var dashes = [...]int{8, 13, 18, 23}

func shortUID(uid string) packedUID {
	other := packedUID{text: uid}
	if len(uid) != 36 {
		return other
	}
	short := packedUID{isShort: true}
	var digits [32]byte
	n := 0
	for i := range len(uid) {
		dash := slices.Contains(dashes[:], i)
		if dash != (uid[i] == '-') || 'A' <= uid[i] && uid[i] <= 'F' {
			return other
		}
		if !dash {
			digits[n] = uid[i]
			n++
		}
	}
	if _, err := hex.Decode(short.short[:], digits[:]); err != nil {
		return other
	}
	return short
}

func (u packedUID) String() string {
	if !u.isShort {
		return u.text
	}
	var text [36]byte
	digits := hex.AppendEncode(make([]byte, 0, 32), u.short[:])
	for i := range text {
		if slices.Contains(dashes[:], i) {
			text[i] = '-'
			continue
		}
		text[i], digits = digits[0], digits[1:]
	}
	return string(text[:])
}

// gaps are the positions in a JSON text, plus 1, at which two other texts were left out: the
// uid, and one that the caller keeps. The second position is the one without the uid. 0 means
// that the text was not left out.
type gaps [2]uint64

// mostGaps is the size of the longest JSON from which texts are left out. In longer ones, they
// are not worth a copy.
const mostGaps = 8 << 10

// open returns the JSON without the first occurrence of each text. If there is one, the
// result is in the spare slice.
func (g *gaps) open(spare *[]byte, raw []byte, texts ...string) []byte {
	if len(raw) > mostGaps {
		return raw
	}
	copied := false
	for i, text := range texts {
		at := bytes.Index(raw, []byte(text))
		if at < 0 || text == "" {
			continue
		}
		if !copied {
			*spare = append((*spare)[:0], raw...)
			raw, copied = *spare, true
		}
		g[i] = uint64(at) + 1
		raw = slices.Delete(raw, at, at+len(text))
	}
	return raw
}

// fill returns the JSON that open was called with.
func (g *gaps) fill(raw []byte, texts ...string) []byte {
	for i := len(texts) - 1; i >= 0; i-- {
		if g[i] > 0 {
			raw = slices.Insert(raw, int(g[i])-1, []byte(texts[i])...)
		}
	}
	return raw
}
