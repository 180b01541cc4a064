// Package footprint estimates the memory and the time of decoding JSON into a Go type. An
// empty JSON object in a list has three bytes, and becomes a struct of thousands. A
// quantity with a large exponent takes minutes. The error of a long time has eight times its length.
package footprint

import (
	"bytes"
	"reflect"
	"sync"

	"gopf.dev/gopf/internal/jsonvalue"
)

// Type is a Go type that JSON is decoded into. It is immutable and safe for concurrent use.
type Type struct {
	shape  shape
	size   int              // of a value, without the values that it refers to
	elem   *Type            // of pointers, slices, arrays and maps
	fields map[string]*Type // of structs, by their JSON names
	custom bool             // it decodes itself
	costly bool             // it has quantities, which may take long to decode
	worst  int              // the largest memory that one JSON value can add somewhere in the type

	quoting bool // it has times or durations, whose decoders quote wrong texts

	zero   int // the length of the JSON of a zero value
	widest int // the longest JSON that one JSON value can add somewhere in the type: see [Type.Expands]
}

type shape uint8

const (
	scalar    shape = iota // takes its size, and a text its length
	structure              // its fields are in it
	pointer                // refers to one element
	list                   // refers to any number of elements
	mapping                // likewise, with names
	dynamic                // is decoded into maps and lists
	quantity               // a resource.Quantity, which decodes itself
	moment                 // a time or a duration, which decodes itself
)

const (
	// growth is the memory of a slice, per element: append makes it longer step by step,
	// and the former arrays are garbage.
	growth = 3
	// entry is the memory of an element of a map without its value: the name and the
	// unused part of the table.
	entry = 64
	// packing is the memory of a value that decodes itself, per byte of its JSON.
	packing = 8
	// dense is the memory of an object in maps and lists: see [jsonvalue.Memory].
	dense = 400
)

// types has the result of [Of] for each type. It is shared, as the cache of encoding/json is:
// the result depends on nothing else, and a program has few types.
var types sync.Map

// Of returns the type.
func Of(t reflect.Type) *Type {
	if known, ok := types.Load(t); ok {
		return known.(*Type)
	}
	c := compiler{}
	compiled := c.compile(t)
	for _, one := range c {
		one.worst, one.costly = worst(one, map[*Type]bool{}), has(one, quantity, map[*Type]bool{})
		one.quoting, one.widest = has(one, moment, map[*Type]bool{}), widest(one, map[*Type]bool{})
	}
	known, _ := types.LoadOrStore(t, compiled)
	return known.(*Type)
}

// Memory returns the approximate memory in bytes of the JSON after it is decoded into the
// type. It may be too high by a few times. It is 0 if it surely is not more than the limit.
func (t *Type) Memory(json []byte, limit int) int {
	if !t.MayExceed(json, limit) {
		return 0
	}
	memory, err := t.measure(json, false)
	if err != nil {
		return 0 // the decoder fails as well
	}
	return memory
}

// MayExceed reports whether [Type.Memory] may exceed the limit. It only counts values, because
// most objects are small.
func (t *Type) MayExceed(json []byte, limit int) bool {
	return mayExceed(json, t.worst, packing*len(json), limit)
}

// mayExceed reports whether a sum may exceed the limit to which each value of the JSON adds one.
func mayExceed(json []byte, one, sum, limit int) bool {
	if len(json)/2*one+sum <= limit { // a value takes at least two bytes, with the comma
		return false
	}
	values := 1 + bytes.Count(json, []byte(",")) + bytes.Count(json, []byte("[")) + bytes.Count(json, []byte("{"))
	return values*one+sum > limit
}

// reader reads the source.
type reader struct {
	*jsonvalue.Reader
	source []byte
	custom int  // the values around the next one whose types decode themselves
	checks bool // texts that must not be decoded are errors
	zeros  int  // the JSON of the zero values that decoding adds
}

// mostCustom limits the levels of types that decode themselves whose texts are read as a whole: a
// type may contain itself, and each level reads the text of all levels below again.
const mostCustom = 8

func (t *Type) measure(json []byte, checks bool) (memory int, err error) {
	r := &reader{Reader: jsonvalue.Read(json), source: json, checks: checks}
	defer r.Close()
	memory, err = t.read(r)
	return t.size + memory, err
}

// read returns the memory that the next value adds to a value of the type. A type that
// decodes itself may do so as if it did not, after it has set defaults, or into maps and
// lists: the largest counts.
func (t *Type) read(r *reader) (memory int, err error) {
	if !t.custom {
		return t.plain(r)
	}
	from := r.InputOffset()
	r.custom++
	memory, err = t.plain(r)
	r.custom--
	if err != nil {
		return 0, err
	}
	value := r.source[from:r.InputOffset()]
	memory = max(memory, packing*len(value))
	if r.custom < mostCustom {
		memory = max(memory, jsonvalue.Memory(value))
	}
	return memory, nil
}

// plain is read for a type that does not decode itself.
func (t *Type) plain(r *reader) (memory int, err error) {
	switch kind := r.PeekKind(); {
	case t.shape == pointer && kind != 'n':
		r.zeros += t.elem.zero
		memory, err = t.elem.read(r)
		return t.elem.size + memory, err
	case t.shape == dynamic || t.shape == quantity || t.shape == moment || kind != '{' && kind != '[':
		value, err := r.ReadValue()
		if err != nil {
			return 0, err
		}
		memory, err = t.whole(value)
		if !r.checks {
			err = nil // short ones may be valid, and other objects of a review are decoded
		}
		return memory, err
	case kind == '{' && (t.shape == structure || t.shape == mapping):
		err = r.Each(func(name []byte) error {
			added, err := t.member(r, name)
			memory += added
			return err
		})
		return memory, err
	case kind == '[' && t.shape == list:
		return t.elements(r)
	}
	return 0, r.SkipValue() // it does not fit
}

// whole returns the memory that a value adds which is not read in parts.
func (t *Type) whole(value []byte) (memory int, err error) {
	switch {
	case t.shape == dynamic:
		return jsonvalue.Memory(value), nil
	case t.shape == quantity:
		return packing * len(value), checkQuantity(value)
	case t.shape == moment:
		return packing * len(value), checkTime(value)
	case value[0] == '"' && (t.shape == scalar || t.shape == list):
		return len(value), nil
	}
	return 0, nil
}

// member returns the memory that a member of a JSON object adds.
func (t *Type) member(r *reader, name []byte) (memory int, err error) {
	if t.shape == mapping {
		of := 2*t.elem.size + entry + 2*len(name)
		r.zeros += t.elem.zero
		memory, err = t.elem.read(r)
		return of + memory, err
	}
	field := t.fields[string(name)]
	if field == nil {
		return 0, r.SkipValue()
	}
	return field.read(r)
}

// elements returns the memory that the elements of a list add.
func (t *Type) elements(r *reader) (memory int, err error) {
	if _, err := r.ReadToken(); err != nil {
		return 0, err
	}
	for r.PeekKind() != ']' {
		r.zeros += t.elem.zero
		added, err := t.elem.read(r)
		if err != nil {
			return 0, err
		}
		memory += growth*t.elem.size + added
	}
	_, err = r.ReadToken()
	return memory, err
}
