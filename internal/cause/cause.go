// Package cause decides why an object must be handled. The reason follows from a few
// facts: whether the object is being deleted, whether it was handled before, whether it
// has changed since, and whether this process has just started. It is pure.
package cause

import "gopf.dev/gopf/diff"

// Reason is the reason for handling an object. Handlers are declared for the first four
// reasons, and records store them as their purpose.
type Reason string

// The reasons.
const (
	Create Reason = "create" // seen for the first time
	Update Reason = "update" // changed since it was last handled
	Delete Reason = "delete" // being deleted, and has our finalizer
	Resume Reason = "resume" // unchanged, but new to this process

	Noop Reason = "noop" // the essence is unchanged
	Free Reason = "free" // being deleted, without our finalizer
	Gone Reason = "gone" // no longer exists
)

// Handled reports whether handlers can be declared for the reason.
func (r Reason) Handled() bool {
	return r == Create || r == Update || r == Delete || r == Resume
}

// Title returns the reason as a capitalized noun for log lines.
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

// Facts has everything that the reason depends on.
type Facts struct {
	Gone     bool // the object no longer exists
	Deleting bool // the object has a deletion timestamp
	Blocked  bool // the object has our finalizer
	Known    bool // there is a last-handled configuration
	Changed  bool // the last-handled configuration differs from the object
	Initial  bool // the object is a list item that this process has not handled yet
}

// Detect returns the reason. initial reports whether resuming handlers take part: the
// object is then new to this process, but was handled before.
func Detect(f Facts) (reason Reason, initial bool) {
	switch {
	case f.Gone:
		return Gone, f.Initial
	case f.Deleting && !f.Blocked:
		return Free, f.Initial
	case f.Deleting:
		return Delete, f.Initial
	case !f.Known:
		return Create, false // an object that was never handled cannot be resumed
	case f.Changed:
		return Update, f.Initial
	case f.Initial:
		return Resume, f.Initial
	}
	return Noop, f.Initial
}

// Cause is a reason with the change that it is about.
type Cause struct {
	Reason   Reason
	Initial  bool // resuming handlers take part
	Deleting bool // the object has a deletion timestamp

	Old   map[string]any // the last-handled essence; nil means that there is none
	New   map[string]any // the current essence
	Diff  diff.Diff      // from Old to New
	Field []string       // the field that Diff is narrowed to; empty means the whole essence
}
