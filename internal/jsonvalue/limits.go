package jsonvalue

import (
	"bytes"
	"fmt"
)

// Bounds on JSON that comes from objects. They are checked before anything is
// decoded, because decoded values take up to a hundred times as much memory as
// their text, and because a deep nesting is expensive for everything that
// descends into it.
const (
	// MaxStored is the number of bytes that a stored text may have, unpacked: the
	// base, a record or the handling note. An API server stores no larger objects.
	MaxStored = 2 << 20
	// MaxObject is the number of bytes that an object may have. It is more than API
	// servers store, because JSON is longer than their own formats.
	MaxObject = 16 << 20
	// MaxDepth is the number of levels.
	MaxDepth = 1000
	// MaxValues is the number of values on all levels. A JSON object counts as four,
	// because decoded ones take the most memory.
	MaxValues = 1 << 18

	// objectValues is the number of values that a JSON object counts as.
	objectValues = 4
)

// LimitError says that a JSON text exceeds a bound.
type LimitError struct {
	What  string // bytes, levels or values
	Limit int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("it has more than %d %s", e.Limit, e.What)
}

// Check returns a [*LimitError] if the text has more bytes than the limit, or more
// levels or values than are allowed. It does not decode the text and does not
// notice syntax errors. Ordinary texts cost little more than counting brackets.
func Check(text []byte, limit int) error {
	if len(text) > limit {
		return &LimitError{"bytes", limit}
	}
	if len(text) < MaxDepth { //mutate:skip the rest would say the same
		return nil
	}
	if len(text) < 2*MaxValues && bytes.Count(text, []byte("{"))+bytes.Count(text, []byte("[")) <= MaxDepth {
		return nil // a value takes two bytes at least
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

// stringEnd returns the number of bytes up to the end of a JSON string, the closing
// quote included; -1 if it has none. The text begins behind the opening quote.
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
