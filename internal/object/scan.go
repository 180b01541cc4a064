package object

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"gopf.dev/gopf/internal/jsonvalue"
)

// span is a part of the JSON. The zero value means none.
type span struct{ from, to int }

func (s span) of(raw []byte) (part []byte, ok bool) { return raw[s.from:s.to], s.to > s.from }

// without returns the JSON without the part.
func (s span) without(raw []byte) []byte {
	kept := make([]byte, 0, len(raw)-(s.to-s.from))
	return append(append(kept, raw[:s.from]...), raw[s.to:]...)
}

// after returns the position of the part after the part cut was removed from the JSON.
// cut may be the content of s.
func (s span) after(cut span) span {
	move := func(at int) int {
		if at >= cut.to {
			at -= cut.to - cut.from
		}
		return at
	}
	return span{move(s.from), move(s.to)}
}

func (s span) shifted(by int) span {
	if s == (span{}) {
		return s
	}
	return span{s.from + by, s.to + by}
}

// parts are the positions of the most used members of an object.
type parts struct{ metadata, status span }

// scan reads the identity in one pass and skips all other values. It also finds the
// parts and the managedFields.
func scan(raw []byte) (id Identity, found parts, managed span, err error) {
	r := jsonvalue.Read(raw)
	defer r.Close()
	if r.PeekKind() != '{' {
		return id, found, managed, errors.New("not a JSON object")
	}
	skip := func(into *span) error {
		value, err := r.ReadValue()
		end := int(r.InputOffset())
		*into = span{end - len(value), end}
		return err
	}
	var seen names
	err = r.Each(func(name []byte) error {
		if err := seen.add(name, topNames); err != nil {
			return err
		}
		switch string(name) {
		case "apiVersion":
			return readCached(r, &id.APIVersion)
		case "kind":
			return readCached(r, &id.Kind)
		case "metadata":
			if r.PeekKind() != '{' {
				return skip(&found.metadata)
			}
			from := int(r.InputOffset())
			from += bytes.IndexByte(raw[from:], '{')
			err := scanMetadata(r, raw, &id, &managed)
			found.metadata = span{from, int(r.InputOffset())}
			return err
		case "status":
			return skip(&found.status)
		}
		return r.SkipValue()
	})
	if err == nil && int(r.InputOffset()) < len(raw) { // trailing spaces were trimmed
		err = errors.New("unexpected data after the JSON object")
	}
	return id, found, managed, err
}

// VersionOf returns the resource version of an object, a list or a table. Empty means that it has
// none. VersionOf reads the JSON only up to there, so the rest may be malformed.
func VersionOf(json []byte) (version string, err error) {
	r := jsonvalue.Read(json)
	defer r.Close()
	if r.PeekKind() != '{' {
		return "", errors.New("not a JSON object")
	}
	err = r.Each(func(name []byte) error {
		if string(name) != "metadata" || r.PeekKind() != '{' {
			return r.SkipValue()
		}
		return r.Each(func(name []byte) error {
			if string(name) != "resourceVersion" {
				return r.SkipValue()
			}
			if err := readString(r, &version); err != nil {
				return err
			}
			return errFound
		})
	})
	if err == errFound {
		err = nil
	}
	return version, err
}

var errFound = errors.New("found")

// find returns the JSON of a member of an object. The last one counts.
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
	var seen names
	return r.Each(func(name []byte) error {
		if err := seen.add(name, metadataNames); err != nil {
			return err
		}
		switch string(name) {
		case "namespace":
			return readCached(r, &id.Namespace)
		case "name":
			return readString(r, &id.Name)
		case "uid":
			return readString(r, &id.UID)
		case "resourceVersion":
			return readString(r, &id.ResourceVersion)
		case "deletionTimestamp":
			id.Deleting = r.PeekKind() != 'n'
		case "managedFields":
			// The reader is behind the name: step back over it, and remove one comma as
			// well, the one before or else the one after.
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

// Names that may occur only once: those that the operator itself reads, and those that it
// compares. Of duplicate names, some readers would use the last value, and others would merge
// all values. API servers send no duplicates, but any client can send a review. A check of
// all names would take more memory than the object.
var (
	topNames      = []string{"apiVersion", "kind", "metadata", "spec", "status", "data"}
	metadataNames = []string{"name", "namespace", "uid", "resourceVersion", "generation", "deletionTimestamp", "managedFields", "labels", "annotations", "finalizers", "ownerReferences"}
)

// names is the set of names that have occurred, as bits.
type names uint16

// add adds a name. It fails if the name may occur only once and has occurred before.
func (n *names) add(name []byte, once []string) error {
	for i, one := range once {
		if string(name) != one { // does not allocate
			continue
		}
		if *n&(1<<i) != 0 {
			return fmt.Errorf("the field %q occurs twice", one)
		}
		*n |= 1 << i
		return nil
	}
	return nil
}

// readCached reads a string that many objects have.
func readCached(r *jsonvalue.Reader, into *string) error {
	text, ok, err := r.Cached()
	if ok {
		*into = text
	}
	return err
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
