package execute

import (
	"bytes"
	"runtime/debug"
)

// PanicStack returns the stack of a panic that is being recovered. The user's frames
// come first: frames of the recovering function and of the runtime are omitted. It must
// be called by the deferred function that recovers.
func PanicStack() []byte { return fromPanic(debug.Stack()) }

// fromPanic removes the frames above the panic: those of deferred functions and of the
// runtime. A stack without a panic is returned unchanged.
func fromPanic(stack []byte) []byte {
	head, rest, ok := bytes.Cut(stack, []byte("\n"))
	if !ok {
		return stack
	}
	lines := bytes.SplitAfter(rest, []byte("\n"))
	at := -1
	for i := 0; i+1 < len(lines); i += 2 { // two lines per frame: the function and its position
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
