package jsonvalue

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Encode encodes a value as JSON, with the keys of objects in order. It accepts all values
// that package json accepts. For decoded JSON, it allocates only the text.
func Encode(v any) ([]byte, error) {
	buf := encoded.Get().(*[]byte)
	text, err := appendJSON((*buf)[:0], v)
	if err != nil {
		return nil, err
	}
	if cap(text) <= maxKept { //mutate:skip buffers only save memory
		*buf = text
		defer encoded.Put(buf) //mutate:skip buffers only save memory
	}
	return bytes.Clone(text), nil
}

// Marshal is like [json.Marshal], but leaves the characters <, > and & as they are. package json
// writes them in six bytes each, so clients that send them would cost six times as much memory.
func Marshal(v any) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// encoded are buffers for reuse, because most texts have about the same size.
var encoded = sync.Pool{New: func() any { return new([]byte) }}

const maxKept = 64 << 10

func appendJSON(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case string:
		return appendString(b, v), nil
	case int64:
		return strconv.AppendInt(b, v, 10), nil
	case map[string]any:
		return appendObject(b, v)
	case []any:
		return appendArray(b, v)
	}
	encode := Marshal
	if _, ok := v.(float64); ok {
		encode = json.Marshal // faster
	}
	text, err := encode(v)
	return append(b, text...), err
}

func appendObject(b []byte, fields map[string]any) ([]byte, error) {
	if fields == nil {
		return append(b, "null"...), nil
	}
	names := make([]string, 0, 8) // most objects need no more, and these are not allocated
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	b = append(b, '{')
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, name), ':')
		var err error
		if b, err = appendJSON(b, fields[name]); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

func appendArray(b []byte, list []any) ([]byte, error) {
	if list == nil {
		return append(b, "null"...), nil
	}
	b = append(b, '[')
	for i, item := range list {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendJSON(b, item); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

// appendString appends a string in quotes. Texts in ASCII without control characters, such as
// stored essences, take a third of the time of AppendQuote.
func appendString(b []byte, s string) []byte {
	start, from := len(b), 0
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(append(b, s[from:i]...), '\\', c)
			from = i + 1
		case c < ' ' || c >= utf8.RuneSelf:
			b, _ = jsontext.AppendQuote(b[:start], s) // invalid UTF-8 is replaced, as in package json
			return b
		}
	}
	return append(append(b, s[from:]...), '"')
}
