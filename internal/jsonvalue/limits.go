package jsonvalue

import (
	"bytes"
	"fmt"
)

// Limits of JSON texts from objects. They are checked before decoding: decoded values
// take up to a hundred times the memory of their text, and recursion into deeply nested
// values is expensive.
const (
	// MaxStored limits the bytes of stored text after decompression: the base, a
	// record or the handling note. API servers do not store larger objects.
	MaxStored = 2 << 20
	// MaxObject limits the bytes of an object. It is higher than the limit of API
	// servers, because JSON is longer than their storage formats.
	MaxObject = 16 << 20
	// MaxDepth limits the levels of nesting.
	MaxDepth = 1000
	// MaxValues limits the number of values on all levels. A JSON object counts as four,
	// because decoded objects take the most memory.
	MaxValues = 1 << 18

	// objectValues is the number of values that a JSON object counts as.
	objectValues = 4
)

// LimitError means that a JSON text exceeds a limit.
type LimitError struct {
	What  string // "bytes", "levels" or "values"
	Limit int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("it has more than %d %s", e.Limit, e.What)
}

// Check returns a [*LimitError] if the text has more bytes than the limit, more levels
// than [MaxDepth], or more values than [MaxValues]. It does not decode the text and
// ignores syntax errors. For ordinary texts it costs little more than counting brackets.
func Check(text []byte, limit int) error {
	if len(text) > limit {
		return &LimitError{"bytes", limit}
	}
	if len(text) < MaxDepth { //mutate:skip the rest would say the same
		return nil
	}
	if len(text) < 2*MaxValues && bytes.Count(text, []byte("{"))+bytes.Count(text, []byte("[")) <= MaxDepth { //mutate:skip it is only faster
		return nil // a value takes at least two bytes
	}
	depth, values := 0, 1
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			end := stringEnd(text[i+1:])
			if end < 0 {
				return nil
			}
			i += end
		case '{', '[':
			if depth++; depth > MaxDepth {
				return &LimitError{"levels", MaxDepth}
			}
			values++
			if text[i] == '{' {
				values += objectValues - 1
			}
			if values > MaxValues {
				return &LimitError{"values", MaxValues}
			}
		case '}', ']':
			depth--
		case ',':
			if values++; values > MaxValues {
				return &LimitError{"values", MaxValues}
			}
		}
	}
	return nil
}

// Deeper reports whether a text has more levels of nesting. It ignores syntax errors.
func Deeper(text []byte, levels int) bool {
	if bytes.Count(text, []byte("{"))+bytes.Count(text, []byte("[")) <= levels { //mutate:skip it is only faster
		return false
	}
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			end := stringEnd(text[i+1:])
			if end < 0 {
				return false
			}
			i += end
		case '{', '[':
			if depth++; depth > levels {
				return true
			}
		case '}', ']':
			depth--
		}
	}
	return false
}

// stringEnd returns the length of a JSON string, including the closing quote. It is -1
// if the string has no end. The text must start after the opening quote.
func stringEnd(text []byte) int {
	for at := 0; ; {
		quote := bytes.IndexByte(text[at:], '"')
		if quote < 0 {
			return -1
		}
		at += quote
		escapes := 0
		for escapes < at && text[at-1-escapes] == '\\' {
			escapes++
		}
		at++
		if escapes%2 == 0 {
			return at
		}
	}
}
