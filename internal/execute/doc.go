// Package execute runs the handlers that were chosen, once: attempts, their
// limits, panics, sub-handlers. Users' handlers are called here and nowhere else
// (their filters, lifecycles and edits are where they are asked for).
package execute
