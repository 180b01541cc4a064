package jsonvalue

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Number decodes the text of a JSON number without changing its value.
//
//   - An integer that fits becomes an int64.
//   - A number with a fraction or an exponent becomes a float64.
//   - An integer beyond int64 becomes a float64 if Go formats that float64 with the
//     same digits. API servers written in Go send no others, because they keep such
//     integers as float64. The Kubernetes libraries decode them in the same way.
//   - Any other integer becomes a [json.Number], which keeps all of its digits.
//
// It fails if the number exceeds the range of float64.
func Number(text string) (any, error) {
	if strings.ContainsAny(text, ".eE") {
		return strconv.ParseFloat(text, 64)
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	// Go formats floats from 22 digits on with an exponent; 22 characters include a sign.
	if err == nil && len(text) <= 22 && strconv.FormatFloat(f, 'f', -1, 64) == text && f < 1e21 {
		return f, nil
	}
	return json.Number(text), nil
}
