package admission

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash"

	"gopf.dev/gopf/internal/jsonvalue"
)

// outline has what decides whether an update only removes finalizers. It is made without
// decoding the object, which may be too large or too deep for that.
type outline struct {
	deleting   bool
	finalizers []any
	rest       [sha256.Size]byte // of all other fields, except managedFields
}

// releases reports whether the request only removes finalizers of an object that is being
// deleted. It is [released] for objects that cannot be decoded: they must be deletable.
func (r *request) releases() bool {
	if r.Operation != "UPDATE" || r.SubResource != "" {
		return false
	}
	before, err := outlineOf(r.OldObject)
	if err != nil {
		return false
	}
	after, err := outlineOf(r.Object)
	return err == nil && before.deleting && before.rest == after.rest && onlyRemoved(before.finalizers, after.finalizers)
}

func outlineOf(raw []byte) (found outline, err error) {
	r := jsonvalue.Read(raw)
	defer r.Close()
	if r.PeekKind() != '{' {
		return outline{}, errors.New("not an object")
	}
	rest := sha256.New()
	err = r.Each(func(name []byte) error {
		if string(name) != "metadata" || r.PeekKind() != '{' {
			return addMember(rest, r, "top", name)
		}
		return r.Each(func(name []byte) error {
			switch string(name) {
			case "managedFields":
				return r.SkipValue()
			case "finalizers":
				value, err := r.ReadValue()
				if err != nil {
					return err
				}
				var names []string // other values are errors: they could not be compared
				err = json.Unmarshal(value, &names)
				for _, name := range names {
					found.finalizers = append(found.finalizers, name)
				}
				return err
			case "deletionTimestamp":
				found.deleting = r.PeekKind() == '"'
			}
			return addMember(rest, r, "metadata", name)
		})
	})
	rest.Sum(found.rest[:0])
	return found, err
}

// addMember adds a member to the hash, with its place and its name.
func addMember(to hash.Hash, r *jsonvalue.Reader, place string, name []byte) error {
	texts := [][]byte{[]byte(place), bytes.Clone(name), nil} // the name is valid until the next read
	value, err := r.ReadValue()
	if err != nil {
		return err
	}
	texts[2] = value
	for _, text := range texts {
		_, _ = to.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(text)))) // hashes never fail
		_, _ = to.Write(text)
	}
	return nil
}
