package storage

import (
	"errors"
	"slices"
	"strings"
)

// MalformedError reports state on an object that no operator can have written: it
// was damaged by another client. Damaged state counts as absent, with a warning in
// the log; it never holds up the object.
//
// [Progress].Load returns it together with the records that it could read.
// [Base].Load returns it alone.
type MalformedError struct {
	Where string   // for example "the annotation kopf.zalando.org/create_fn"
	IDs   []string // the ids of the records that cannot be read, sorted; nil for a base
	Err   error
}

// Error implements error.
func (e *MalformedError) Error() string {
	return "what is stored in " + e.Where + " is malformed: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *MalformedError) Unwrap() error { return e.Err }

// damage collects the records that cannot be read, by their ids.
type damage map[string]*MalformedError

// add notes a record that cannot be read.
func (d *damage) add(id, where string, err error) {
	d.join(&MalformedError{Where: where, IDs: []string{id}, Err: err})
}

func (d *damage) join(e *MalformedError) {
	if *d == nil {
		*d = damage{}
	}
	for _, id := range e.IDs {
		(*d)[id] = e
	}
}

// err returns one error for all of them; nil if there are none.
func (d damage) err() error {
	var all MalformedError
	var where []string
	var causes []error
	for _, id := range sortedKeys(d) {
		e := d[id]
		if !slices.Contains(where, e.Where) {
			where, causes = append(where, e.Where), append(causes, e.Err)
		}
		all.IDs = append(all.IDs, id)
	}
	switch len(causes) {
	case 0:
		return nil
	case 1:
		all.Err = causes[0]
	default:
		all.Err = errors.Join(causes...)
	}
	all.Where = strings.Join(where, ", ")
	return &all
}
