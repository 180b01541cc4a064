// Package execute runs the handlers that were chosen, once: attempts, their
// limits, panics, sub-handlers. User code is called here and nowhere else.
package execute
