package object

import (
	"bytes"
	"encoding/json"
	"errors"

	"gopf.dev/gopf/internal/jsonvalue"
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
	r := jsonvalue.Read(raw)
	defer r.Close()
	if r.PeekKind() != '{' {
		return id, managed, errors.New("not a JSON object")
	}
	err = r.Each(func(name []byte) error {
		switch string(name) {
		case "apiVersion":
			return readString(r, &id.APIVersion)
		case "kind":
			return readString(r, &id.Kind)
		case "metadata":
			if r.PeekKind() != '{' {
				return r.SkipValue()
			}
			return scanMetadata(r, raw, &id, &managed)
		}
		return r.SkipValue()
	})
	return id, managed, err
}

// find returns the JSON of a member of an object; the last one counts.
func find(raw []byte, name string) (value []byte, ok bool) {
	r := jsonvalue.Read(raw)
	defer r.Close()
	err := r.Each(func(field []byte) error {
		wanted := string(field) == name
		found, err := r.ReadValue()
		if end := int(r.InputOffset()); wanted && err == nil {
			value, ok = raw[end-len(found):end], true
		}
		return err
	})
	return value, ok && err == nil
}

func scanMetadata(r *jsonvalue.Reader, raw []byte, id *Identity, managed *span) error {
	return r.Each(func(name []byte) error {
		switch string(name) {
		case "namespace":
			return readString(r, &id.Namespace)
		case "name":
			return readString(r, &id.Name)
		case "uid":
			return readString(r, &id.UID)
		case "resourceVersion":
			return readString(r, &id.ResourceVersion)
		case "deletionTimestamp":
			id.Deleting = r.PeekKind() != 'n'
		case "managedFields":
			// The reader stands behind the name: step back over it, and take
			// one comma along, the one before or else the one after.
			from := bytes.LastIndexByte(raw[:r.InputOffset()-1], '"')
			err := r.SkipValue()
			to := int(r.InputOffset())
			if before := bytes.TrimRight(raw[:from], " \t\r\n"); before[len(before)-1] == ',' {
				from = len(before) - 1
			} else if after := bytes.TrimLeft(raw[to:], " \t\r\n"); len(after) > 0 && after[0] == ',' {
				to = len(raw) - len(after) + 1
			}
			*managed = span{from, to}
			return err
		}
		return r.SkipValue()
	})
}

func readString(r *jsonvalue.Reader, into *string) error {
	if r.PeekKind() != '"' {
		return r.SkipValue()
	}
	token, err := r.ReadToken()
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
