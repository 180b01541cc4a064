package object

import (
	"bytes"
	"encoding/json"
	"errors"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// span is a part of the JSON to leave out.
type span struct{ from, to int }

func (s span) apply(raw []byte) []byte {
	kept := make([]byte, 0, len(raw)-(s.to-s.from))
	return append(append(kept, raw[:s.from]...), raw[s.to:]...)
}

// scan reads the identity in one pass, skipping all values it does not need,
// and finds the managedFields.
func scan(raw []byte) (id Identity, managed span, err error) {
	s := scanners.Get().(*scanner)
	defer s.free()
	dec := s.start(raw)
	if dec.PeekKind() != '{' {
		return id, managed, errors.New("not a JSON object")
	}
	err = eachField(dec, func(name []byte) error {
		switch string(name) {
		case "apiVersion":
			return readString(dec, &id.APIVersion)
		case "kind":
			return readString(dec, &id.Kind)
		case "metadata":
			if dec.PeekKind() != '{' {
				return dec.SkipValue()
			}
			return scanMetadata(dec, raw, &id, &managed)
		}
		return dec.SkipValue()
	})
	return id, managed, err
}

// find returns the JSON of a member of an object; the last one counts.
func find(raw []byte, name string) (value []byte, ok bool) {
	s := scanners.Get().(*scanner)
	defer s.free()
	dec := s.start(raw)
	err := eachField(dec, func(field []byte) error {
		wanted := string(field) == name
		found, err := dec.ReadValue()
		if end := int(dec.InputOffset()); wanted && err == nil {
			value, ok = raw[end-len(found):end], true
		}
		return err
	})
	return value, ok && err == nil
}

func scanMetadata(dec *jsontext.Decoder, raw []byte, id *Identity, managed *span) error {
	return eachField(dec, func(name []byte) error {
		switch string(name) {
		case "namespace":
			return readString(dec, &id.Namespace)
		case "name":
			return readString(dec, &id.Name)
		case "uid":
			return readString(dec, &id.UID)
		case "resourceVersion":
			return readString(dec, &id.ResourceVersion)
		case "deletionTimestamp":
			id.Deleting = dec.PeekKind() != 'n'
		case "managedFields":
			// The decoder stands behind the name: step back over it, and take
			// one comma along, the one before or else the one after.
			from := bytes.LastIndexByte(raw[:dec.InputOffset()-1], '"')
			err := dec.SkipValue()
			to := int(dec.InputOffset())
			if before := bytes.TrimRight(raw[:from], " \t\r\n"); before[len(before)-1] == ',' {
				from = len(before) - 1
			} else if after := bytes.TrimLeft(raw[to:], " \t\r\n"); len(after) > 0 && after[0] == ',' {
				to = len(raw) - len(after) + 1
			}
			*managed = span{from, to}
			return err
		}
		return dec.SkipValue()
	})
}

// scanner is a decoder to be used again: making one costs more than most
// scans.
type scanner struct {
	buf bytes.Buffer
	dec jsontext.Decoder
}

var scanners = sync.Pool{New: func() any { return new(scanner) }}

// start reads from raw without copying it.
func (s *scanner) start(raw []byte) *jsontext.Decoder {
	s.buf = *bytes.NewBuffer(raw)
	// Servers send no duplicate names, and looking for them takes half of the
	// time.
	s.dec.Reset(&s.buf, jsontext.AllowDuplicateNames(true))
	return &s.dec
}

// free lets go of the bytes.
func (s *scanner) free() {
	s.buf = bytes.Buffer{}
	s.dec.Reset(&s.buf)
	scanners.Put(s)
}

// eachField calls fn for every field of the object that comes next; fn
// consumes the value, with which the name becomes invalid.
func eachField(dec *jsontext.Decoder, fn func(name []byte) error) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if err := fn(unquoted(name)); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

// unquoted is the text of a JSON string, in place unless it has escapes.
func unquoted(s jsontext.Value) []byte {
	if bytes.IndexByte(s, '\\') < 0 {
		return s[1 : len(s)-1]
	}
	text, _ := jsontext.AppendUnquote(nil, s) // the decoder has checked it
	return text
}

func readString(dec *jsontext.Decoder, into *string) error {
	if dec.PeekKind() != '"' {
		return dec.SkipValue()
	}
	token, err := dec.ReadToken()
	if err == nil {
		*into = token.String()
	}
	return err
}

func kjsonMarshal(fields map[string]any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(fields)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}
