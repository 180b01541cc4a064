package admission

import (
	"errors"
	"fmt"
	"net/http"

	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/terminal"
)

// verdict is the combined result of all handlers of a review.
type verdict struct {
	denial   *denial // nil means that the request is allowed
	warnings []string
	patch    []byte // a JSON patch; nil means none
}

// denial is the reason for denying a request, with the code of the response.
type denial struct {
	message string
	code    int
	rank    int // of several denials, the one with the lowest rank is reported
}

// longestDenial is the length of the longest message of a denial, in bytes. It may quote the object,
// and a response is kept until its client has read it.
const longestDenial = 8 << 10

// denied converts a handler's error to a denial. The error types of package handler
// that classify an error are always outermost.
func denied(err error) *denial {
	d := &denial{message: terminal.Cut(err.Error(), longestDenial), code: http.StatusInternalServerError, rank: 3}
	switch e := err.(type) {
	case *handler.DeniedError:
		d.rank = 0
		if e.Code != 0 {
			d.code = e.Code
		}
	case *handler.PermanentError:
		d.rank = 1
	case *handler.UndecodableError:
		d.rank = 1
		d.code = http.StatusUnprocessableEntity
		d.message = "the object does not fit the handler's type: " + d.message
	case *handler.TemporaryError:
		d.rank = 2
	}
	if _, panicked := errors.AsType[*execute.PanicError](err); panicked {
		// The value may contain secrets, so it goes only to the log.
		d.message = "the admission handler panicked; see the operator's log"
	}
	if d.message == "" {
		d.message = fmt.Sprintf("%T", err)
	}
	return d
}

// add adds a denial. The first one with the lowest rank counts.
func (v *verdict) add(d *denial) {
	if v.denial == nil || d.rank < v.denial.rank {
		v.denial = d
	}
}
