// Package panics shows where code of users panicked.
package panics

import (
	"bytes"
	"runtime/debug"
)

// Stack returns the stack of a panic that is being recovered, with the user's frames
// first. It must be called by the deferred function that recovers, or by a function
// that it calls.
func Stack() []byte { return fromPanic(debug.Stack()) }

// PlainError is the value of a panic whose stack says nothing: its error names the text of a user
// that failed, such as an expression, and the stack would only have frames of the framework.
type PlainError struct{ Err error }

func (p PlainError) Error() string { return p.Err.Error() }

func (p PlainError) Unwrap() error { return p.Err }

// StackOf returns the stack of a panic with the value v; see [Stack]. A [PlainError] has
// none: the result is nil.
func StackOf(v any) []byte {
	if _, ok := v.(PlainError); ok {
		return nil
	}
	return Stack()
}

// fromPanic cuts off the frames above the place of the panic. They are those of the
// deferred functions and of the runtime, which say nothing about the error. A stack
// without a panic stays as it is.
func fromPanic(stack []byte) []byte {
	head, rest, ok := bytes.Cut(stack, []byte("\n"))
	if !ok {
		return stack
	}
	lines := bytes.SplitAfter(rest, []byte("\n"))
	at := -1
	for i := 0; i+1 < len(lines); i += 2 { // a function, and its place
		if bytes.HasPrefix(lines[i], []byte("panic(")) {
			at = i + 2
			break
		}
	}
	for at >= 0 && at+1 < len(lines) && bytes.HasPrefix(lines[at], []byte("runtime.")) {
		at += 2
	}
	if at < 0 || at >= len(lines) {
		return stack
	}
	return append(append(bytes.Clone(head), '\n'), bytes.Join(lines[at:], nil)...)
}
