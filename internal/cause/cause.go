// Package cause decides why an object is to be handled: what is known of it
// before, what it is now and what the stream said make a reason. It is pure.
package cause

import "gopf.dev/gopf/diff"

// Reason is why an object is handled. The first four are what handlers are
// declared for, and what is stored as the purpose of their progress.
type Reason string

// The reasons.
const (
	Create Reason = "create" // seen for the first time
	Update Reason = "update" // changed since it was last handled
	Delete Reason = "delete" // marked for deletion and waiting for us
	Resume Reason = "resume" // unchanged, but new to this process

	Noop Reason = "noop" // nothing of interest has changed
	Free Reason = "free" // marked for deletion, but not waiting for us
	Gone Reason = "gone" // deleted for good
)

// Handled tells whether there can be handlers for the reason.
func (r Reason) Handled() bool {
	return r == Create || r == Update || r == Delete || r == Resume
}

// Title is the reason as a noun at the beginning of a sentence.
func (r Reason) Title() string {
	switch r {
	case Create:
		return "Creation"
	case Update:
		return "Updating"
	case Delete:
		return "Deletion"
	case Resume:
		return "Resuming"
	}
	return string(r)
}

// Facts are all that the reason depends on.
type Facts struct {
	Gone     bool // the stream reported the deletion as done
	Deleting bool // the object has a deletion timestamp
	Blocked  bool // the object has our finalizer
	Known    bool // there is a last-handled configuration
	Changed  bool // the last-handled configuration differs from the object
	Initial  bool // the object came with a listing and this process has not handled it yet
}

// Detect tells the reason, and whether handlers for resuming take part too:
// they do when an object is new to this process but not to the operator.
func Detect(f Facts) (reason Reason, initial bool) {
	switch {
	case f.Gone:
		return Gone, f.Initial
	case f.Deleting && !f.Blocked:
		return Free, f.Initial
	case f.Deleting:
		return Delete, f.Initial
	case !f.Known:
		return Create, false // never handled: there is nothing to resume
	case f.Changed:
		return Update, f.Initial
	case f.Initial:
		return Resume, f.Initial
	}
	return Noop, f.Initial
}

// Cause is a reason with its circumstances.
type Cause struct {
	Reason   Reason
	Initial  bool // handlers for resuming take part
	Deleting bool

	Old   map[string]any // the essence last handled; nil if never
	New   map[string]any // the essence now
	Diff  diff.Diff      // from Old to New
	Field []string       // the field that Old, New and Diff are narrowed to; empty for the whole
}
