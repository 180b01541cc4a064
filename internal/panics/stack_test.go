package panics

import (
	"errors"
	"testing"
)

func TestAStackWithoutAPanicStaysWhole(t *testing.T) {
	for _, stack := range []string{"", "goroutine 1 [running]:", "goroutine 1 [running]:\nmain.f()\n\t/f.go:1\n", "panic("} {
		if got := string(fromPanic([]byte(stack))); got != stack {
			t.Errorf("%q became %q", stack, got)
		}
	}
}

func TestOnlyPlainPanicsHaveNoStack(t *testing.T) {
	cause := errors.New("no such key")
	for want, value := range map[bool]any{true: cause, false: PlainError{cause}} {
		func() {
			defer func() {
				v := recover()
				if stack := StackOf(v); (stack != nil) != want {
					t.Errorf("%#v has the stack %q", v, stack)
				}
				if err, ok := v.(error); !ok || err.Error() != "no such key" || !errors.Is(err, cause) {
					t.Errorf("the error became %v", v)
				}
			}()
			panic(value)
		}()
	}
}
