package storage

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gopf.dev/gopf/internal/jsonvalue"
)

// EncodeEssence encodes an essence as JSON, in the same bytes as Kopf does for objects
// whose keys arrive sorted, such as custom resources. The JSON is compact and in ASCII.
// Keys are sorted, with two exceptions: metadata and status come last, and within metadata,
// labels and annotations come first.
//
// Nothing depends on identical bytes. But if they are identical, neither framework can see
// a difference in an essence that the other one wrote.
func EncodeEssence(essence map[string]any) (text string, err error) {
	err = withEncoded(essence, func(b []byte) { text = string(b) })
	return text, err
}

// encodeBase returns an essence as stored in an annotation, and its hash. fits reports
// whether [DecodeEssence] accepts the text.
func encodeBase(essence map[string]any) (text, hash string, fits bool, err error) {
	err = withEncoded(essence, func(b []byte) {
		b = append(b, '\n')
		text, hash, fits = string(b), hashOf(b), jsonvalue.Check(b, jsonvalue.MaxStored) == nil
	})
	return text, hash, fits, err
}

// withEncoded calls fn with an essence as JSON, unless that fails. The bytes are valid only
// during the call.
func withEncoded(essence map[string]any, fn func([]byte)) error {
	buf := buffers.Get().(*[]byte)
	b, err := appendEssence((*buf)[:0], essence)
	if err != nil {
		return err
	}
	fn(b)
	if cap(b) <= maxKeptBuffer { //mutate:skip buffers only save memory
		*buf = b
		buffers.Put(buf) //mutate:skip buffers only save memory
	}
	return nil
}

// buffers are reused, because most essences have about the same size.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

const maxKeptBuffer = 64 << 10

func appendEssence(b []byte, essence map[string]any) ([]byte, error) {
	keys := append(sortedBut(nil, essence, "metadata", "status"), "metadata", "status")
	return appendObject(b, essence, keys, func(b []byte, key string, value any) ([]byte, error) {
		if metadata, ok := value.(map[string]any); ok && key == "metadata" {
			keys := sortedBut([]string{"labels", "annotations"}, metadata, "labels", "annotations")
			return appendObject(b, metadata, keys, appendMember)
		}
		return appendValue(b, value)
	})
}

// DecodeEssence decodes an essence from JSON, ignoring white space around it. It returns
// found false for null. Integers become int64, other numbers float64. An integer beyond
// int64 becomes a [json.Number] unless a float64 has the same digits.
//
// It returns an error, without decoding anything, if the text has more than 2 MiB, 1,000
// levels or 262,144 values. No object has such an essence.
func DecodeEssence(text string) (essence map[string]any, found bool, err error) {
	raw := []byte(text)
	if err := jsonvalue.Check(raw, jsonvalue.MaxStored); err != nil {
		return nil, false, err
	}
	essence, err = jsonvalue.Object(raw)
	return essence, essence != nil, err
}

// sortedBut appends the sorted keys of an object, except for the given ones.
func sortedBut(keys []string, object map[string]any, except ...string) []string {
	start := len(keys)
	for key := range object {
		if !slices.Contains(except, key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys[start:])
	return keys
}

// appendObject appends the given keys of an object, in this order, if they exist.
func appendObject(
	b []byte, object map[string]any, keys []string, member func(b []byte, key string, value any) ([]byte, error),
) ([]byte, error) {
	b = append(b, '{')
	start := len(b)
	for _, key := range keys {
		value, ok := object[key]
		if !ok {
			continue
		}
		if len(b) > start {
			b = append(b, ',')
		}
		b = append(appendString(b, key), ':')
		var err error
		if b, err = member(b, key, value); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
	}
	return append(b, '}'), nil
}

func appendMember(b []byte, _ string, value any) ([]byte, error) {
	return appendValue(b, value)
}

func appendValue(b []byte, value any) ([]byte, error) {
	switch value := value.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, value), nil
	case string:
		return appendString(b, value), nil
	case int64:
		return strconv.AppendInt(b, value, 10), nil
	case int:
		return strconv.AppendInt(b, int64(value), 10), nil
	case float64:
		return appendFloat(b, value)
	case json.Number:
		return appendNumber(b, value), nil
	case map[string]any:
		var few [8]string // most objects need no more keys, and these are not allocated
		return appendObject(b, value, sortedBut(few[:0], value), appendMember)
	case []any:
		return appendList(b, value)
	}
	// Other types come from Go code, not from JSON. Convert them first.
	plain, err := jsonvalue.Of(value)
	if err != nil {
		return nil, err
	}
	return appendValue(b, plain)
}

func appendList(b []byte, list []any) ([]byte, error) {
	b = append(b, '[')
	for i, item := range list {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendValue(b, item); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

// appendFloat writes whole numbers as integers, like the API server and Kopf.
func appendFloat(b []byte, f float64) ([]byte, error) {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return nil, fmt.Errorf("%v cannot be encoded as JSON", f)
	case f == math.Trunc(f) && math.Abs(f) < 1e21:
		return strconv.AppendFloat(b, f, 'f', -1, 64), nil
	}
	return appendPythonFloat(b, f), nil
}

// appendNumber writes integers unchanged, and other numbers like Python.
func appendNumber(b []byte, n json.Number) []byte {
	f, err := n.Float64()
	if err != nil || !strings.ContainsAny(n.String(), ".eE") {
		return append(b, n...)
	}
	return appendPythonFloat(b, f)
}

func appendPythonFloat(b []byte, f float64) []byte {
	if size := math.Abs(f); size != 0 && (size < 1e-4 || size >= 1e16) {
		return strconv.AppendFloat(b, f, 'e', -1, 64)
	}
	b = strconv.AppendFloat(b, f, 'f', -1, 64)
	if f == math.Trunc(f) {
		b = append(b, ".0"...)
	}
	return b
}

// appendString escapes everything outside of printable ASCII, as surrogate pairs where
// needed, and nothing else unnecessarily.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	if isPlain(s) {
		return append(append(b, s...), '"')
	}
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r >= ' ' && r <= '~':
			b = append(b, byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r == '\b':
			b = append(b, `\b`...)
		case r == '\f':
			b = append(b, `\f`...)
		case r > 0xffff:
			r -= 0x10000
			b = appendEscape(b, 0xd800+r>>10)
			b = appendEscape(b, 0xdc00+r&0x3ff)
		default:
			b = appendEscape(b, r)
		}
	}
	return append(b, '"')
}

// isPlain reports whether the text needs no escaping.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

func appendEscape(b []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	return append(b, '\\', 'u', digits[r>>12&0xf], digits[r>>8&0xf], digits[r>>4&0xf], digits[r&0xf])
}
