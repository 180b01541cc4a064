package admission

import (
	"errors"
	"fmt"
	"net/http"

	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/registry"
)

// verdict is what handlers have made of a review.
type verdict struct {
	denial   *denial // nil if it is granted
	warnings []string
	patch    []byte // JSON; nil for none
}

// denial is why, with the code to answer with.
type denial struct {
	message string
	code    int
	rank    int // of several denials, the one of the lowest rank is told
}

// denied makes a denial of a handler's error. The classes of errors are always
// outermost: see package registry.
func denied(err error) *denial {
	d := &denial{message: err.Error(), code: http.StatusInternalServerError, rank: 3}
	switch e := err.(type) {
	case *registry.DeniedError:
		d.rank = 0
		if e.Code != 0 {
			d.code = e.Code
		}
	case *registry.PermanentError:
		d.rank = 1
	case *registry.UndecodableError:
		d.rank = 1
		d.code = http.StatusUnprocessableEntity
		d.message = "the object does not fit the handler's type: " + d.message
	case *registry.TemporaryError:
		d.rank = 2
	}
	if _, panicked := errors.AsType[*execute.PanicError](err); panicked {
		// The value may be anything, secrets included; the log has it.
		d.message = "the handler of the review has panicked; see the operator's log"
	}
	if d.message == "" {
		d.message = fmt.Sprintf("%T", err)
	}
	return d
}

// add takes one more denial into account.
func (v *verdict) add(d *denial) {
	if v.denial == nil || d.rank < v.denial.rank {
		v.denial = d
	}
}
