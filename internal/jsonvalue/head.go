package jsonvalue

import (
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	v1 "github.com/go-json-experiment/json/v1"
)

// Head returns at least so many bytes of the start of the JSON of a large value, as [Marshal]
// would encode it, apart from invalid UTF-8. It takes memory only for these. ok is false if the JSON
// is shorter, or if the value has none.
func Head(v any, limit int) (start []byte, ok bool) {
	w := &head{limit: limit}
	err := json.MarshalWrite(w, v, v1.DefaultOptionsV1(), json.Deterministic(true), jsontext.EscapeForHTML(false))
	return w.text, errors.Is(err, errFull)
}

// head keeps the start of a text and refuses the rest.
type head struct {
	text  []byte
	limit int
}

var errFull = errors.New("the text is long enough")

func (w *head) Write(p []byte) (int, error) {
	if len(w.text) >= w.limit {
		return 0, errFull
	}
	w.text = append(w.text, p...)
	return len(p), nil
}
