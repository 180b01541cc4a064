package storage

import (
	"errors"
	"maps"
	"slices"
	"strings"
)

// MalformedError reports state on an object that no operator can have written: another
// client damaged it. Damaged state counts as absent, with a warning in the log. It never
// blocks the object.
//
// [Progress].Load returns it together with all readable records. [Base].Load returns it
// alone.
type MalformedError struct {
	Where string   // for example "the annotation kopf.zalando.org/create_fn"
	IDs   []string // ids of the unreadable records, sorted; nil means a base
	Err   error
}

// Error implements error.
func (e *MalformedError) Error() string {
	return "malformed state in " + e.Where + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *MalformedError) Unwrap() error { return e.Err }

// damage collects the unreadable records by id.
type damage map[string]*MalformedError

// add adds an unreadable record.
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

// err returns one error for all records. nil means that there are none.
func (d damage) err() error {
	if len(d) == 0 {
		return nil
	}
	var all MalformedError
	var where []string
	var causes []error
	noted := map[string]bool{} // there may be thousands of places
	for _, id := range slices.Sorted(maps.Keys(d)) {
		e := d[id]
		if !noted[e.Where] {
			noted[e.Where] = true
			where, causes = append(where, e.Where), append(causes, e.Err)
		}
		all.IDs = append(all.IDs, id)
	}
	all.Err = causes[0]
	if len(causes) > 1 {
		all.Err = errors.Join(causes...)
	}
	all.Where = strings.Join(where, ", ")
	return &all
}
