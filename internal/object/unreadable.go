package object

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"gopf.dev/gopf/internal/jsonvalue"
)

// UnreadableError means that the JSON of an object is malformed or exceeds a limit.
// Identity contains the fields that could be read.
type UnreadableError struct {
	Identity
	Err error
}

func (e *UnreadableError) Error() string {
	if e.Name == "" {
		return "read the object: " + e.Err.Error()
	}
	return fmt.Sprintf("read the object %s: %v", e.Identity, e.Err)
}

func (e *UnreadableError) Unwrap() error { return e.Err }

// Unreadable returns the error for an object of which only the start of the JSON is
// known.
func Unreadable(head []byte, err error) *UnreadableError { return unreadable(head, err) }

func unreadable(head []byte, err error) *UnreadableError {
	return &UnreadableError{identify(head), err}
}

// Bare returns a body of which only the identity may be used. It takes less memory than
// [Identity.Stub].
func (i Identity) Bare() *Body { return &Body{Identity: i} }

// Stub returns a body that has only the identity.
func (i Identity) Stub() *Body {
	metadata := map[string]any{"name": i.Name, "uid": i.UID}
	if i.Namespace != "" {
		metadata["namespace"] = i.Namespace
	}
	if i.ResourceVersion != "" {
		metadata["resourceVersion"] = i.ResourceVersion
	}
	fields := map[string]any{"metadata": metadata}
	if i.APIVersion != "" {
		fields["apiVersion"] = i.APIVersion
	}
	if i.Kind != "" {
		fields["kind"] = i.Kind
	}
	b, err := FromMap(fields)
	if err != nil {
		return &Body{Identity: i} // unreachable: strings can always be encoded
	}
	return b
}

// identify reads the identity from JSON that may be malformed, truncated or nested to
// any depth. Unreadable fields stay empty.
func identify(head []byte) (id Identity) {
	s := jsonvalue.NewStream(bytes.NewReader(head), len(head))
	text := func(into *string) error {
		value, err := s.Value()
		if err == nil {
			_ = json.Unmarshal(value, into) // anything but a string counts as absent
		}
		return err
	}
	metadata := func(name []byte) error {
		switch string(name) {
		case `"namespace"`:
			return text(&id.Namespace)
		case `"name"`:
			return text(&id.Name)
		case `"uid"`:
			return text(&id.UID)
		case `"resourceVersion"`:
			return text(&id.ResourceVersion)
		case `"deletionTimestamp"`:
			value, err := s.Value()
			id.Deleting = err == nil && string(value) != "null"
			return err
		}
		return s.Skip()
	}
	err := s.Object(func(name []byte) error {
		switch string(name) {
		case `"apiVersion"`:
			return text(&id.APIVersion)
		case `"kind"`:
			return text(&id.Kind)
		case `"metadata"`:
			if c, err := s.Peek(); err != nil || c != '{' {
				return errors.Join(err, s.Skip())
			}
			return s.Object(metadata)
		}
		return s.Skip()
	})
	_ = err // the end of the JSON
	return id
}
