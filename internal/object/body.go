// Package object represents Kubernetes objects as the bytes that were received. It
// reads their identity at once and decodes everything else on demand.
package object

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"

	"gopf.dev/gopf/internal/footprint"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/terminal"
	"gopf.dev/gopf/internal/unmarshal"
)

// Body is one version of one object. It is immutable and safe for concurrent use:
// returned values are shared, and callers must not change them.
type Body struct {
	Identity

	raw      []byte
	memory   atomic.Int64          // estimated size when decoded; 0 for small objects
	measured atomic.Bool           // memory includes compressed texts
	typed    atomic.Pointer[typed] // the estimates so far; see [Body.MemoryAs]
	parts    parts
	managed  span // the managedFields with their name and a comma; see [Body.WithoutManagedFields]
	lacking  int  // the size of the managedFields that raw does not have, in bytes
	stale    bool

	mu      sync.Mutex
	decoded bool           // fields is complete
	fields  map[string]any // decoded members
}

// Identity contains the fields of an object that are known without decoding it.
type Identity struct {
	APIVersion, Kind     string
	Namespace, Name, UID string
	ResourceVersion      string
	Deleting             bool // has a deletion timestamp
}

// Key returns a key that is unique among the objects of one resource, including
// recreated ones with the same name. It is the uid, or the namespace and name if there
// is none.
func (i Identity) Key() string {
	if i.UID != "" {
		return i.UID
	}
	return i.Namespace + "/" + i.Name
}

// Version returns the resource version as a number, which orders the versions of one
// resource. ok is false if it is not a number.
func (i Identity) Version() (v uint64, ok bool) {
	v, err := strconv.ParseUint(i.ResourceVersion, 10, 64)
	return v, err == nil
}

// Decimal returns the number of a resource version as API servers write it, without leading
// zeros. ok is false for all other texts, and for 0.
func Decimal(version string) (n uint64, ok bool) {
	if version == "" || version[0] < '1' || version[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0, false
	}
	return n, true
}

// Newer reports whether i is a newer version than another one of the same object. It
// returns false if a version is not a number.
func (i Identity) Newer(than Identity) bool {
	a, okA := i.Version()
	b, okB := than.Version()
	return okA && okB && a > b
}

// String returns the name of the object for logs.
func (i Identity) String() string {
	if i.Namespace == "" {
		return i.Name
	}
	return i.Namespace + "/" + i.Name
}

// Parse reads the identity from the JSON of an object and keeps a copy of the JSON
// without managedFields, which few handlers need and which are often half of an object.
// The error is an [*UnreadableError]; objects that exceed the limits of package
// jsonvalue count as unreadable.
func Parse(json []byte) (*Body, error) { return parse(json, false) }

// ParseWhole is like [Parse] but keeps managedFields.
func ParseWhole(json []byte) (*Body, error) { return parse(json, true) }

func parse(json []byte, whole bool) (*Body, error) {
	json = bytes.TrimSpace(json)
	if err := jsonvalue.Check(json, jsonvalue.MaxObject); err != nil {
		return nil, unreadable(json, err)
	}
	id, found, managed, err := scan(json)
	if err != nil {
		return nil, unreadable(json, err)
	}
	if whole {
		b := &Body{Identity: id, raw: bytes.Clone(json), parts: found, managed: managed}
		return b.taking(estimate(json)), nil
	}
	return cut(&Body{Identity: id, raw: json, parts: found, managed: managed}), nil
}

// cut returns a copy of the body without its managedFields.
func cut(b *Body) *Body {
	kept := parts{b.parts.metadata.after(b.managed), b.parts.status.after(b.managed)}
	raw := b.managed.without(b.raw)
	return (&Body{Identity: b.Identity, raw: raw, parts: kept, lacking: b.ManagedSize(), stale: b.stale}).taking(estimate(raw))
}

// WithoutManagedFields returns the body without its managedFields. It does not scan the JSON
// again. A body that was parsed without them is returned as it is.
func (b *Body) WithoutManagedFields() *Body {
	if b.managed == (span{}) {
		return b
	}
	return cut(b)
}

// Metadata returns the JSON of the metadata. Callers must not change it. ok is false if
// there are none.
func (b *Body) Metadata() (json []byte, ok bool) { return b.parts.metadata.of(b.raw) }

// HasStatus reports whether the object has a status.
func (b *Body) HasStatus() bool { return b.parts.status != span{} }

// Status returns the JSON of the status.
func (b *Body) Status() (json []byte, ok bool) { return b.parts.status.of(b.raw) }

// FromMap returns a body with the fields. The caller must not use them afterwards.
func FromMap(fields map[string]any) (*Body, error) {
	raw, err := kjsonMarshal(fields)
	if err != nil {
		return nil, fmt.Errorf("encode the object: %w", err)
	}
	return Parse(raw)
}

// WithType returns the body with apiVersion and kind filled in if they are absent, as
// in list items.
func (b *Body) WithType(apiVersion, kind string) *Body {
	if b.Kind != "" && b.APIVersion != "" {
		return b
	}
	id := b.Identity
	head := make([]byte, 0, len(b.raw)+64)
	head = append(head, '{')
	if id.APIVersion == "" {
		id.APIVersion = apiVersion
		head = append(head, `"apiVersion":`...)
		head = strconv.AppendQuote(head, apiVersion)
		head = append(head, ',')
	}
	if id.Kind == "" {
		id.Kind = kind
		head = append(head, `"kind":`...)
		head = strconv.AppendQuote(head, kind)
		head = append(head, ',')
	}
	rest := b.raw[1:]
	if first := bytes.TrimLeft(rest, " \t\r\n"); len(first) > 0 && first[0] == '}' {
		head = head[:len(head)-1]
	}
	typed := append(head, rest...)
	added := len(typed) - len(b.raw)
	moved := parts{b.parts.metadata.shifted(added), b.parts.status.shifted(added)}
	return (&Body{Identity: id, raw: typed, parts: moved, managed: b.managed.shifted(added), lacking: b.lacking}).weighing(b)
}

// At returns the body with the resource version of a later version whose content is
// unknown. See [Body.Stale].
func (b *Body) At(resourceVersion string) *Body {
	id := b.Identity
	id.ResourceVersion = resourceVersion
	return (&Body{Identity: id, raw: b.raw, parts: b.parts, managed: b.managed, lacking: b.lacking, stale: b.stale || resourceVersion != b.ResourceVersion}).weighing(b)
}

// Stale reports whether the body is older than its resource version: see [Body.At].
func (b *Body) Stale() bool { return b.stale }

// Undecoded returns the same body without decoded values, for keeping it in memory.
func (b *Body) Undecoded() *Body {
	return (&Body{Identity: b.Identity, raw: b.raw, parts: b.parts, managed: b.managed, lacking: b.lacking, stale: b.stale}).weighing(b)
}

// Raw returns the JSON of the object. Callers must not change it.
func (b *Body) Raw() []byte { return b.raw }

// Size returns the bytes that the body keeps in memory before it is decoded.
func (b *Body) Size() int { return len(b.raw) }

// ManagedSize returns the size of the JSON of the managedFields, in bytes. Bodies without
// them have it as well, if they were read with them.
func (b *Body) ManagedSize() int { return b.lacking + b.managed.to - b.managed.from }

// WriteSize returns the size of the object for the API server that processes a write to it.
// Clients can make the managedFields large while the rest is tiny.
func (b *Body) WriteSize() int {
	return writeSize(len(b.raw)-(b.managed.to-b.managed.from), b.ManagedSize())
}

// managedTimes is about the time that an API server needs for a byte of managedFields, in
// times of that for another byte: it decodes and merges each of them as a set of fields.
const managedTimes = 4

func writeSize(content, managed int) int { return content + managedTimes*managed }

// Memory estimates the number of bytes that the object takes when it is decoded once, or
// that its compressed texts take if that is more and they are measured. It is 0 for small
// objects, which take less than 200 KiB.
func (b *Body) Memory() int { return int(b.memory.Load()) }

// Measure makes [Body.Memory] include the compressed texts in the metadata and the status,
// which may contain the state of the operator. It unpacks them, which may take tens of
// milliseconds.
func (b *Body) Measure() {
	if b.measured.Swap(true) {
		return
	}
	packed := 0
	for _, part := range []span{b.parts.metadata, b.parts.status} {
		if text, ok := part.of(b.raw); ok {
			packed += jsonvalue.PackedMemory(text)
		}
	}
	if packed > b.Memory() {
		b.taking(packed)
	}
}

// taking sets the estimate of the memory.
func (b *Body) taking(memory int) *Body {
	b.memory.Store(int64(memory))
	return b
}

// weighing sets the estimate of the memory to that of another body of the same texts.
func (b *Body) weighing(as *Body) *Body {
	b.measured.Store(as.measured.Load())
	return b.taking(as.Memory())
}

// smallest is the size of the smallest object whose memory is estimated.
const smallest = 1 << 10

// MemoryAs returns the approximate memory of the object as a Go type, in bytes. It is 0 if it
// surely is not more than the limit. The limit must be the same in all calls for a type. The
// first call for a type may take milliseconds.
func (b *Body) MemoryAs(t *footprint.Type, limit int) int {
	known := b.typed.Load()
	for one := known; one != nil; one = one.next {
		if one.as == t {
			return one.memory
		}
	}
	if !t.MayExceed(b.raw, limit) { // as most objects: nothing is kept for them
		return 0
	}
	one := &typed{as: t, memory: t.Memory(b.raw, limit), next: known}
	for !b.typed.CompareAndSwap(one.next, one) {
		one.next = b.typed.Load()
	}
	return one.memory
}

// typed is the memory of an object as a Go type.
type typed struct {
	as     *footprint.Type
	memory int
	next   *typed // as another type; nil means none
}

// estimate returns the approximate memory of the decoded JSON, or 0 if raw is short.
func estimate(raw []byte) int {
	if len(raw) < smallest {
		return 0
	}
	return jsonvalue.Memory(raw)
}

// Map returns the decoded object. See [jsonvalue.Number] for the types of numbers.
func (b *Body) Map() map[string]any {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.decoded {
		v, _ := jsonvalue.Decode(b.raw) // cannot fail: Parse has scanned it
		b.fields, _ = v.(map[string]any)
		b.decoded = true
	}
	return b.fields
}

// member returns one top-level member. It decodes only that member.
func (b *Body) member(name string) (v any, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if v, ok = b.fields[name]; ok || b.decoded {
		return v, ok
	}
	raw, ok := b.find(name)
	if !ok {
		return nil, false
	}
	v, err := jsonvalue.Decode(raw)
	if err != nil {
		return nil, false
	}
	if b.fields == nil {
		b.fields = make(map[string]any, 2)
	}
	b.fields[name] = v
	return v, true
}

// Forget drops the decoded values, which are decoded again when they are needed. Values that were
// returned stay valid.
func (b *Body) Forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fields, b.decoded = nil, false
}

// find returns the JSON of a top-level member.
func (b *Body) find(name string) (value []byte, ok bool) {
	switch name {
	case "metadata":
		return b.parts.metadata.of(b.raw)
	case "status":
		return b.parts.status.of(b.raw)
	}
	return find(b.raw, name)
}

// Members decodes the top-level members for which wanted returns true. The caller may
// change the result.
func (b *Body) Members(wanted func(name string) bool) map[string]any {
	r := jsonvalue.Read(b.raw)
	defer r.Close()
	fields := make(map[string]any, 4)
	_ = r.Each(func(name []byte) error { // cannot fail: Parse has scanned it
		if !wanted(string(name)) {
			return r.SkipValue()
		}
		return r.Field(fields, name)
	})
	return fields
}

// Fields decodes the object. The caller may change the result. Numbers are as in
// [Body.Map].
func (b *Body) Fields() (map[string]any, error) { return jsonvalue.Object(b.raw) }

// Decode decodes the object into a user's type; see [Decode].
func (b *Body) Decode(into any) error { return Decode(b.raw, into) }

// Decode decodes the JSON of an object into a user's type. In fields of type any, integers beyond
// int64 become float64, as everywhere in Kubernetes libraries; numbers from API servers
// written in Go survive that. Field names are case-sensitive, as for the API server.
//
// Objects that would take too much memory or time are refused: see [footprint.Type.Check].
//
// Long errors are cut, and then wrap no other error: those of many types, such as durations,
// quote the value, with up to four bytes for each of its bytes.
func Decode(text []byte, into any) error {
	if err := footprint.Of(reflect.TypeOf(into)).Check(text); err != nil {
		return err
	}
	err := unmarshal.Into(text, into)
	if err == nil {
		return nil
	}
	if text := err.Error(); len(text) > longestError {
		return errors.New(terminal.Cut(text, longestError))
	}
	return err
}

// longestError is the length of the longest error of [Decode], in bytes. It is kept with the
// object until the object changes.
const longestError = 1024

// Lookup returns the value at a path. A null value is found, with ok set. It decodes
// only the top-level member in which the path starts.
func (b *Body) Lookup(path ...string) (v any, ok bool) {
	if len(path) == 0 {
		return b.Map(), true
	}
	v, ok = b.member(path[0])
	for _, key := range path[1:] {
		m, is := v.(map[string]any)
		if !is {
			return nil, false
		}
		if v, ok = m[key]; !ok {
			return nil, false
		}
	}
	return v, ok
}

// Labels returns the object's labels. nil means that there are none.
func (b *Body) Labels() map[string]any { return b.stringMap("labels") }

// Annotations returns the object's annotations. nil means that there are none.
func (b *Body) Annotations() map[string]any { return b.stringMap("annotations") }

func (b *Body) stringMap(name string) map[string]any {
	if b.lacks(name) {
		return nil
	}
	v, _ := b.Lookup("metadata", name)
	m, _ := v.(map[string]any)
	return m
}

// lacks reports whether the metadata certainly has no such field, without decoding it. Each turn
// asks for annotations and finalizers, and objects without both need no decoded metadata.
func (b *Body) lacks(field string) bool {
	metadata, _ := b.parts.metadata.of(b.raw)
	return bytes.IndexByte(metadata, '\\') < 0 && !bytes.Contains(metadata, []byte(`"`+field+`"`)) // names may be escaped
}

// Finalizers returns the object's finalizers in order. nil means that there are none.
func (b *Body) Finalizers() []string {
	if b.lacks("finalizers") {
		return nil
	}
	v, _ := b.Lookup("metadata", "finalizers")
	list, _ := v.([]any)
	found := make([]string, 0, len(list))
	for _, f := range list {
		if s, ok := f.(string); ok {
			found = append(found, s)
		}
	}
	return found
}

// Generation returns the generation of the specification; 0 means that it is not known.
func (b *Body) Generation() int64 {
	v, _ := b.Lookup("metadata", "generation")
	n, _ := v.(int64)
	return n
}
