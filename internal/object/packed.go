package object

import "strconv"

// Packed is a body in compressed form. It is immutable. There is one for each child, and for
// each object with a timer, so it is small: all but the parts that many share is one text.
type Packed struct {
	shape *shape
	text  string // of a head
}

// shape has the parts that the packed bodies of a resource share.
type shape struct {
	apiVersion, kind string
	dictionary       *dictionary // nil means that they are not compressed
}

// Body returns the body.
func (k *Packed) Body() *Body { return k.BodyWith("") }

// BodyWith returns the body that [Packer.PackWithout] packed without the text.
func (k *Packed) BodyWith(kept string) *Body {
	h := k.head()
	id := k.identity(&h)
	b := (&Body{Identity: id, parts: h.parts, lacking: int(h.managed), stale: h.stale}).taking(int(h.memory))
	spare := len(id.UID) + len(kept) // for the gaps
	switch data := []byte(h.data); h.form {
	case similar:
		b.raw = k.shape.dictionary.decode(data, make([]byte, 0, int(h.size)+spare))
	case deflated:
		b.raw = k.shape.dictionary.inflate(data, make([]byte, h.size, int(h.size)+spare))
	default:
		b.raw = data
	}
	b.raw = h.gaps.fill(b.raw, id.UID, kept)
	return b
}

// Type returns the type of the object.
func (k *Packed) Type() (apiVersion, kind string) { return k.shape.apiVersion, k.shape.kind }

// Names returns the namespace and the name of the object.
func (k *Packed) Names() (namespace, name string) {
	h := k.head()
	return h.namespace, h.name
}

// Unpacked returns about the bytes of the JSON of the object.
func (k *Packed) Unpacked() int {
	h := k.head()
	return max(int(h.size), len(h.data))
}

// UID returns the uid of the object.
func (k *Packed) UID() string {
	h := k.head()
	return h.uid.String()
}

// HasUID reports whether the object has the uid. It allocates nothing.
func (k *Packed) HasUID(uid string) bool {
	h := k.head()
	return h.uid == shortUID(uid)
}

// Deleting reports whether the object has a deletion timestamp.
func (k *Packed) Deleting() bool {
	h := k.head()
	return h.deleting
}

// Identity returns the identity of the body.
func (k *Packed) Identity() Identity {
	h := k.head()
	return k.identity(&h)
}

func (k *Packed) identity(h *head) Identity {
	return Identity{
		APIVersion: k.shape.apiVersion, Kind: k.shape.kind, Namespace: h.namespace, Name: h.name, UID: h.uid.String(),
		ResourceVersion: h.resourceVersion(), Deleting: h.deleting,
	}
}

// ResourceVersion returns the resource version.
func (k *Packed) ResourceVersion() string {
	h := k.head()
	return h.resourceVersion()
}

func (h *head) resourceVersion() string {
	if h.number > 0 {
		return strconv.FormatUint(h.number, 10)
	}
	return h.version
}

// Is reports whether the body has the identity.
func (k *Packed) Is(id Identity) bool {
	h := k.head()
	return h.hasVersion(id.ResourceVersion) && h.uid == shortUID(id.UID) && h.deleting == id.Deleting && h.namespace == id.Namespace && h.name == id.Name &&
		k.shape.apiVersion == id.APIVersion && k.shape.kind == id.Kind
}

// HasVersion reports whether the body has the resource version.
func (k *Packed) HasVersion(version string) bool {
	h := k.head()
	return h.hasVersion(version)
}

func (h *head) hasVersion(version string) bool {
	if number, decimal := Decimal(version); decimal || h.number > 0 {
		return number == h.number
	}
	return h.version == version
}

// Key returns the key of the object: see [Identity.Key].
func (k *Packed) Key() string { return k.Identity().Key() }

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
	h := k.head()
	if h.number > 0 {
		return h.number, true
	}
	return Identity{ResourceVersion: h.version}.Version()
}

// Stale reports whether the body is older than its resource version: see [Body.At].
func (k *Packed) Stale() bool {
	h := k.head()
	return h.stale
}

// Hollow returns only the identity of the body. Its content must not be used.
func (k *Packed) Hollow() *Packed {
	h := k.head()
	h.size = uint64(k.JSONSize())
	h.form, h.memory, h.parts, h.gaps = plain, 0, parts{}, gaps{}
	return &Packed{&shape{apiVersion: k.shape.apiVersion, kind: k.shape.kind}, h.encode(nil)}
}

// JSONSize returns about the size of the JSON, in bytes, even of a hollow body.
func (k *Packed) JSONSize() int {
	h := k.head()
	return max(int(h.size), len(h.data))
}

// WriteSize is [Body.WriteSize], even of a hollow body.
func (k *Packed) WriteSize() int {
	h := k.head()
	return writeSize(k.JSONSize(), int(h.managed))
}

// Size returns the bytes that the packed JSON takes.
func (k *Packed) Size() int {
	h := k.head()
	return len(h.data)
}
