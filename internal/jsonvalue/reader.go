// Package jsonvalue reads JSON, either piece by piece without decoding, or into maps,
// lists and plain values. It preserves the values of all numbers.
package jsonvalue

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// Reader reads one JSON text. Readers are pooled, because creating one costs more than
// most reads. Of duplicate names in an object, the last one counts: servers send none,
// and detecting them would double the time.
type Reader struct {
	jsontext.Decoder

	buf   bytes.Buffer
	names [256]string // cached field names, by a hash
}

var readers = sync.Pool{New: func() any { return new(Reader) }}

// Read returns a reader of the text, which it does not copy. The caller must close the
// reader, and must not modify the text before.
func Read(text []byte) *Reader {
	r := readers.Get().(*Reader)
	r.buf = *bytes.NewBuffer(text)
	r.Reset(&r.buf, jsontext.AllowDuplicateNames(true))
	return r
}

// Close returns the reader to the pool. It must not be used afterwards.
func (r *Reader) Close() {
	r.buf = bytes.Buffer{} //mutate:skip it only frees the text earlier
	r.Reset(&r.buf)        //mutate:skip it only frees the text earlier
	readers.Put(r)         //mutate:skip it only saves memory
}

// Each calls fn for every field of the next value, which must be an object. fn must
// consume the field's value; the name is valid only until then.
func (r *Reader) Each(fn func(name []byte) error) error {
	if _, err := r.ReadToken(); err != nil {
		return err
	}
	for r.PeekKind() != '}' {
		name, err := r.ReadValue()
		if err != nil {
			return err
		}
		if err := fn(Unquoted(name)); err != nil {
			return err
		}
	}
	_, err := r.ReadToken()
	return err
}

// SkipValue consumes the next value. It is faster than that of the decoder, which reads
// objects and arrays token by token.
func (r *Reader) SkipValue() error {
	_, err := r.ReadValue()
	return err
}

// Unquoted returns the text of a valid JSON string. It allocates only if there are escapes.
func Unquoted(s []byte) []byte {
	if bytes.IndexByte(s, '\\') < 0 { //mutate:skip the first byte is a quote, and unquoting is only slower
		return s[1 : len(s)-1]
	}
	text, _ := jsontext.AppendUnquote(nil, s) // the decoder has validated it
	return text
}

// Decode decodes the first JSON value of the text and ignores the rest.
func Decode(text []byte) (any, error) {
	r := Read(text)
	defer r.Close()
	return r.Value()
}

// Object decodes a text that consists of one JSON object. For null it returns nil.
func Object(text []byte) (map[string]any, error) {
	r := Read(text)
	defer r.Close()
	v, err := r.Value()
	if err != nil {
		return nil, err
	}
	if _, err := r.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("unexpected text after the JSON value")
	}
	fields, ok := v.(map[string]any)
	if !ok && v != nil {
		return nil, errors.New("not a JSON object")
	}
	return fields, nil
}

// Of encodes v as JSON and decodes it. It respects struct tags and MarshalJSON, and
// preserves the values of numbers.
func Of(v any) (any, error) {
	text, err := Marshal(v)
	if err != nil {
		return nil, err
	}
	return Decode(text)
}
