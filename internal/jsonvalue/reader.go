// Package jsonvalue reads JSON: piece by piece without decoding, or into maps,
// lists and plain values.
package jsonvalue

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// Reader reads one JSON text. It is from a pool: making one costs more than most
// readings. Names that occur twice in an object are not noticed, and the last
// one counts: servers send none, and looking for them takes half of the time.
type Reader struct {
	jsontext.Decoder

	buf   bytes.Buffer
	names [256]string // of fields, by a hash
}

var readers = sync.Pool{New: func() any { return new(Reader) }}

// Read begins to read the text, without copying it. The reader is to be closed.
func Read(text []byte) *Reader {
	r := readers.Get().(*Reader)
	r.buf = *bytes.NewBuffer(text)
	r.Reset(&r.buf, jsontext.AllowDuplicateNames(true))
	return r
}

// Close lets go of the text.
func (r *Reader) Close() {
	r.buf = bytes.Buffer{} //mutate:skip it only frees the text earlier
	r.Reset(&r.buf)        //mutate:skip it only frees the text earlier
	readers.Put(r)         //mutate:skip it only saves memory
}

// Each calls fn for every field of the object that comes next; fn consumes the
// value, with which the name becomes invalid.
func (r *Reader) Each(fn func(name []byte) error) error {
	if _, err := r.ReadToken(); err != nil {
		return err
	}
	for r.PeekKind() != '}' {
		name, err := r.ReadValue()
		if err != nil {
			return err
		}
		if err := fn(unquoted(name)); err != nil {
			return err
		}
	}
	_, err := r.ReadToken()
	return err
}

// unquoted is the text of a JSON string, in place unless it has escapes.
func unquoted(s jsontext.Value) []byte {
	if bytes.IndexByte(s, '\\') < 0 { //mutate:skip the first byte is a quote, and unquoting is only slower
		return s[1 : len(s)-1]
	}
	text, _ := jsontext.AppendUnquote(nil, s) // the decoder has checked it
	return text
}

// Decode returns the first JSON value of the text.
func Decode(text []byte) (any, error) {
	r := Read(text)
	defer r.Close()
	return r.Value()
}

// Object returns the JSON object that the text consists of; nil for null.
func Object(text []byte) (map[string]any, error) {
	r := Read(text)
	defer r.Close()
	v, err := r.Value()
	if err != nil {
		return nil, err
	}
	if _, err := r.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows after the JSON value")
	}
	fields, ok := v.(map[string]any)
	if !ok && v != nil {
		return nil, errors.New("it is not a JSON object")
	}
	return fields, nil
}

// Of returns what decoding the JSON of v yields. Struct tags and MarshalJSON
// count, and no number changes its value.
func Of(v any) (any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return Decode(text)
}
