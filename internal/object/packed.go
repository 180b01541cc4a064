package object

import (
	"strconv"
	"strings"
)

// typeName is the type of the objects of a resource. Packed bodies share it.
type typeName struct{ apiVersion, kind string }

// Packed is a body in compressed form. There is one for each child, and for each object with
// a timer, so it is small: the parts of its identity are in one text.
type Packed struct {
	typed      *typeName
	names      string // namespace, name, uid; also the resource version if it has no number
	number     uint64 // the resource version; 0 means that it is not a decimal number
	dictionary *dictionary
	data       []byte
	memory     int
	size       uint32    // of the JSON
	ends       [3]uint32 // of the namespace, the name and the uid in names
	parts      [2]narrow
	form       form
	stale      bool
	deleting   bool
}

// narrow is a [span] in half of its memory.
type narrow struct{ from, to uint32 }

func narrowed(s span) narrow { return narrow{uint32(s.from), uint32(s.to)} }

func (n narrow) wide() span { return span{int(n.from), int(n.to)} }

// identify returns a packed body without content.
func (p *Packer) identify(id Identity) *Packed {
	typed := p.typed.Load()
	if typed == nil || typed.apiVersion != id.APIVersion || typed.kind != id.Kind {
		typed = &typeName{strings.Clone(id.APIVersion), strings.Clone(id.Kind)}
		p.typed.Store(typed)
	}
	k := &Packed{typed: typed, names: id.Namespace + id.Name + id.UID, deleting: id.Deleting}
	for i, text := range []string{id.Namespace, id.Name, id.UID} {
		k.ends[i] = uint32(len(text))
		if i > 0 {
			k.ends[i] += k.ends[i-1]
		}
	}
	var decimal bool
	if k.number, decimal = Decimal(id.ResourceVersion); !decimal {
		k.names += id.ResourceVersion
	}
	return k
}

// Body returns the body.
func (k *Packed) Body() *Body {
	b := (&Body{Identity: k.Identity(), raw: k.data, parts: parts{k.parts[0].wide(), k.parts[1].wide()}, stale: k.stale}).taking(k.memory)
	switch k.form {
	case similar:
		b.raw = k.dictionary.decode(k.data, int(k.size))
	case deflated:
		b.raw = k.dictionary.inflate(k.data, int(k.size))
	}
	return b
}

// Namespace returns the namespace of the object.
func (k *Packed) Namespace() string { return k.names[:k.ends[0]] }

// Name returns the name of the object.
func (k *Packed) Name() string { return k.names[k.ends[0]:k.ends[1]] }

// UID returns the uid of the object.
func (k *Packed) UID() string { return k.names[k.ends[1]:k.ends[2]] }

// Deleting reports whether the object has a deletion timestamp.
func (k *Packed) Deleting() bool { return k.deleting }

// Identity returns the identity of the body.
func (k *Packed) Identity() Identity {
	return Identity{
		APIVersion: k.typed.apiVersion, Kind: k.typed.kind, Namespace: k.Namespace(), Name: k.Name(), UID: k.UID(),
		ResourceVersion: k.ResourceVersion(), Deleting: k.deleting,
	}
}

// ResourceVersion returns the resource version.
func (k *Packed) ResourceVersion() string {
	if k.number > 0 {
		return strconv.FormatUint(k.number, 10)
	}
	return k.names[k.ends[2]:]
}

// Is reports whether the body has the identity.
func (k *Packed) Is(id Identity) bool {
	return k.HasVersion(id.ResourceVersion) && k.UID() == id.UID && k.deleting == id.Deleting && k.Namespace() == id.Namespace && k.Name() == id.Name &&
		k.typed.apiVersion == id.APIVersion && k.typed.kind == id.Kind
}

// HasVersion reports whether the body has the resource version.
func (k *Packed) HasVersion(version string) bool {
	if number, decimal := Decimal(version); decimal || k.number > 0 {
		return number == k.number
	}
	return k.names[k.ends[2]:] == version
}

// Key returns the key of the object: see [Identity.Key].
func (k *Packed) Key() string {
	return Identity{Namespace: k.Namespace(), Name: k.Name(), UID: k.UID()}.Key()
}

// Newer reports whether the body is a newer version than another one of the same object: see
// [Identity.Newer].
func (k *Packed) Newer(than Identity) bool {
	a, okA := k.Version()
	b, okB := than.Version()
	return okA && okB && a > b
}

// Older is the opposite of Newer: it reports whether the other one is a newer version.
func (k *Packed) Older(than Identity) bool {
	a, okA := k.Version()
	b, okB := than.Version()
	return okA && okB && a < b
}

// Version returns the resource version as a number: see [Identity.Version].
func (k *Packed) Version() (v uint64, ok bool) {
	if k.number > 0 {
		return k.number, true
	}
	return Identity{ResourceVersion: k.names[k.ends[2]:]}.Version()
}

// Stale reports whether the body is older than its resource version: see [Body.At].
func (k *Packed) Stale() bool { return k.stale }

// Hollow returns only the identity of the body. Its content must not be used.
func (k *Packed) Hollow() *Packed {
	return &Packed{typed: k.typed, names: k.names, number: k.number, ends: k.ends, deleting: k.deleting, stale: k.stale}
}

// Size returns the bytes that the packed JSON takes.
func (k *Packed) Size() int { return len(k.data) }
