package panics

import "testing"

func TestAStackWithoutAPanicStaysWhole(t *testing.T) {
	for _, stack := range []string{"", "goroutine 1 [running]:", "goroutine 1 [running]:\nmain.f()\n\t/f.go:1\n", "panic("} {
		if got := string(fromPanic([]byte(stack))); got != stack {
			t.Errorf("%q became %q", stack, got)
		}
	}
}
