package client

import "fmt"

// UnknownOutcomeError means that a write was sent, but its response was lost and its
// outcome could not be confirmed. The write may or may not have happened.
type UnknownOutcomeError struct{ Err error }

func (e *UnknownOutcomeError) Error() string { return e.Err.Error() }

func (e *UnknownOutcomeError) Unwrap() error { return e.Err }

// UnknownKindError means that the resource of an object is not known.
type UnknownKindError struct {
	Type string // the Go type of the object
	Fix  string // the advice, such as a line to add
}

func (e *UnknownKindError) Error() string {
	return fmt.Sprintf("unknown resource of %s: %s", e.Type, e.Fix)
}
