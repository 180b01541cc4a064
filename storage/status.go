package storage

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"gopf.dev/gopf/internal/jsonvalue"
)

// DefaultName is the key in the status under which Kopf stores its values.
const DefaultName = "kopf"

// StatusProgress stores the records of handlers in the status of the objects. The schema
// of the kind must preserve unknown fields there; otherwise nothing is stored. Create one
// by [NewStatusProgress], and change the fields only before its first use.
type StatusProgress struct {
	// Field is the path of the object with all records, as a list of keys. Default:
	// status.<name>.progress.
	Field []string
	// TouchField is the path by which Kopf wakes itself; see [Untoucher]. Default:
	// status.<name>.dummy.
	TouchField []string
}

var (
	_ Progress  = (*StatusProgress)(nil)
	_ Untoucher = (*StatusProgress)(nil)
	_ Placed    = (*StatusProgress)(nil)
)

// NewStatusProgress returns a storage in status.<name>. Operators that handle the same
// objects must use different names.
func NewStatusProgress(name string) *StatusProgress {
	return &StatusProgress{
		Field:      []string{"status", name, "progress"},
		TouchField: []string{"status", name, "dummy"},
	}
}

// Load implements [Progress].
func (s *StatusProgress) Load(_ context.Context, o Object, ids []string) (map[string]Record, error) {
	records := make(map[string]Record)
	if _, some := o.Lookup(s.Field...); !some {
		return records, nil
	}
	var damaged damage
	for _, id := range ids {
		value, ok := o.Lookup(s.path(id)...)
		if !ok || damaged[id] != nil {
			continue
		}
		if _, known := records[id]; known { // forged records may name a sub-handler thousands of times
			continue
		}
		record, found, err := recordOf(value)
		switch {
		case err != nil:
			damaged.add(id, "the status under "+id, err)
		case found:
			records[id] = record
		}
	}
	return records, damaged.err()
}

// Save implements [Progress].
func (s *StatusProgress) Save(_ context.Context, o Object, p Patch, changed map[string]Record, ids []string) error {
	for _, id := range slices.Sorted(maps.Keys(changed)) {
		if !slices.Contains(ids, id) { // purging wins, so there is nothing to write
			p.Set(changed[id].Fields(), s.path(id)...)
		}
	}
	if _, some := o.Lookup(s.Field...); !some {
		if _, some = p.Lookup(s.Field...); !some {
			return nil
		}
	}
	for _, id := range ids {
		purge(o, p, s.path(id)...)
	}
	return nil
}

// Clean implements [Progress].
func (s *StatusProgress) Clean(essence map[string]any) {
	jsonvalue.Drop(essence, s.Field...)
	Tidy(essence)
}

// Untouch implements [Untoucher].
func (s *StatusProgress) Untouch(o Object, p Patch) {
	if value, _ := o.Lookup(s.TouchField...); value != nil {
		p.Set(nil, s.TouchField...)
	}
}

// InStatus implements [Placed].
func (s *StatusProgress) InStatus() bool { return len(s.Field) > 0 && s.Field[0] == "status" }

func (s *StatusProgress) path(id string) []string {
	return append(slices.Clip(s.Field), id)
}

// StatusBase stores the essence as text in the status of the object. The schema of the
// kind must preserve unknown fields there; otherwise nothing is stored. Create one by
// [NewStatusBase], and change the fields only before its first use.
type StatusBase struct {
	// Field is the path of the text, as a list of keys. Default:
	// status.<name>.last-handled-configuration.
	Field []string
	// Ignored are paths, as lists of keys. They are removed from essences, so changes in
	// them are not handled. Default: none.
	Ignored [][]string
}

var _ Base = (*StatusBase)(nil)

// NewStatusBase returns a storage in status.<name>. Operators that handle the same objects
// must use different names.
func NewStatusBase(name string) *StatusBase {
	return &StatusBase{Field: []string{"status", name, "last-handled-configuration"}}
}

// Load implements [Base].
func (s *StatusBase) Load(_ context.Context, o Object) (essence map[string]any, found bool, err error) {
	value, _ := o.Lookup(s.Field...)
	if value == nil {
		return nil, false, nil
	}
	text, ok := value.(string)
	if !ok {
		return nil, false, &MalformedError{Where: jsonvalue.Path(s.Field).String(), Err: fmt.Errorf("the value is of type %T; want a string", value)}
	}
	essence, found, err = DecodeEssence(text)
	if err != nil {
		err = &MalformedError{Where: jsonvalue.Path(s.Field).String(), Err: err}
	}
	return essence, found, err
}

// Save implements [Base].
func (s *StatusBase) Save(_ context.Context, _ Object, p Patch, essence map[string]any) error {
	var text string
	var fits bool // otherwise Load would reject it
	err := withEncoded(essence, func(b []byte) {
		text, fits = string(b), jsonvalue.Check(b, jsonvalue.MaxStored) == nil
	})
	switch {
	case err != nil:
		return fmt.Errorf("encode the last-handled configuration: %w", err)
	case !fits:
		return &TooLargeError{Size: len(text), Compressed: len(text), Room: jsonvalue.MaxStored}
	}
	p.Set(text, s.Field...)
	return nil
}

// Clean implements [Base].
func (s *StatusBase) Clean(essence map[string]any) {
	for _, path := range s.Ignored {
		jsonvalue.Drop(essence, path...)
	}
	jsonvalue.Drop(essence, s.Field...)
	Tidy(essence)
}
