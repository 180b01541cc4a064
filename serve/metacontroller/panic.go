package metacontroller

import (
	"fmt"

	"gopf.dev/gopf/internal/panics"
)

// panicError is the error of a function that panicked.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// safely calls a function and returns its panic as an error: an invalid controller or a
// failing sync must not end the other controllers.
func safely(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{p, panics.Stack()}
		}
	}()
	return call()
}
