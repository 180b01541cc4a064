package gopftest

import (
	"net/http"
	"strconv"
)

// answer returns a function that writes the result of an operation as the response.
func (x *exchange) answer(code int, view *view) func(*entry, error) error {
	return func(e *entry, err error) error {
		if err == nil {
			err = view.check(false)
		}
		if err == nil {
			x.write(code, view.object(e))
		}
		return err
	}
}

func (x *exchange) fail(err error) {
	status := statusOf(err)
	if d := status.Details; d != nil && d.RetryAfterSeconds > 0 {
		x.w.Header().Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	x.write(int(status.Code), encode(status))
}

func (x *exchange) write(code int, body []byte) { x.writeAs(mediaJSON, code, body) }

func (x *exchange) writeAs(mediaType string, code int, body []byte) {
	x.w.Header().Set("Content-Type", mediaType)
	x.w.WriteHeader(code)
	if x.r.Method != http.MethodHead {
		_, _ = x.w.Write(append(body[:len(body):len(body)], '\n')) // the client may have disconnected
	}
}
