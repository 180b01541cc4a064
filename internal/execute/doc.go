// Package execute calls handlers. It is the only place that does: a [Runner] makes one
// pass over the handlers of an object, and an [Attempt] is one call with its limits,
// its panic recovery and its outcome. An [Entrance] limits concurrent calls. Filters,
// lifecycles and edits are the user's code as well, but other packages call them.
package execute
