package footprint

import (
	"bytes"
	"fmt"

	"gopf.dev/gopf/internal/jsonvalue"
)

const (
	// MaxMemory limits the estimated memory of a decoded object.
	MaxMemory = 32 << 20
	// maxQuantity limits the length of a quantity, and maxExponent that of its exponent.
	// Decoding time grows with the square of the digits, and an exponent is a number of
	// digits. Quantities of Kubernetes are below 2 to the 63rd.
	maxQuantity, maxExponent = 64, 3
	// maxTime limits the length of a time and of a duration, in bytes of JSON. The errors of their
	// decoders quote a text up to twice, with up to four bytes for each of its bytes. Texts in
	// shorter objects than longObject are not checked: their errors are short enough.
	maxTime    = 256
	longObject = 64 << 10
)

// TooLargeError means that an object would take too much memory as a Go type.
type TooLargeError struct{ Memory int }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("it would take about %d MiB of memory, more than %d MiB", e.Memory>>20, MaxMemory>>20)
}

// QuantityError means that decoding a quantity would take too much time.
type QuantityError struct{ Text string }

func (e *QuantityError) Error() string {
	return fmt.Sprintf("the quantity %.70s has more than %d characters, or an exponent of more than %d digits", e.Text, maxQuantity, maxExponent)
}

// TimeError means that a text is no time and no duration, because it is too long for one.
type TimeError struct{ Text string }

func (e *TimeError) Error() string {
	return fmt.Sprintf("the time or duration %.70s has more than %d characters", e.Text, maxTime)
}

// Check returns an error if decoding the JSON into the type would take too much memory or
// time: a [*TooLargeError], a [*QuantityError] or a [*TimeError].
func (t *Type) Check(json []byte) error {
	large := t.MayExceed(json, MaxMemory)
	if !large && !(t.costly && suspicious(json)) && !(t.quoting && len(json) > longObject) {
		return nil
	}
	memory, err := t.measure(json, true)
	switch err.(type) {
	case *QuantityError, *TimeError:
		return err
	}
	if large && memory > MaxMemory {
		return &TooLargeError{memory}
	}
	return nil
}

// Small is the memory, in bytes, up to which no decoded value inflates; see [Type.Inflates].
const Small = 64 << 10

// decodedCopies is the number of decoded copies of an object for which a turn has memory.
const decodedCopies = 4

// Inflates reports whether the JSON, decoded into the type, would take so much memory that the
// estimate of a turn does not include it: more than [Small], more than known, and more than four
// times the decoded JSON. A list of nulls as structs does.
func (t *Type) Inflates(json []byte, known int) bool {
	memory := t.Memory(json, Small)
	return memory > max(Small, known) && memory > decodedCopies*jsonvalue.Memory(json)
}

const (
	// longText is the length of JSON, in bytes, that is no expansion.
	longText = 1 << 20
	// longer is by how much the JSON of a decoded value may exceed its source.
	longer = 4
)

// Expands reports whether the JSON would be much longer after it was decoded into the type and
// encoded again: more than 1 MiB, and more than four times as long. Structs without omitempty
// have all fields, and a list may have many nulls as structs.
func (t *Type) Expands(json []byte) bool {
	limit := max(longText, longer*len(json))
	if !mayExceed(json, t.widest, t.zero+len(json), limit) {
		return false
	}
	return t.encoded(json) > limit
}

// encoded returns the approximate length of the JSON after it is decoded into the type and encoded
// again. It is 0 if it cannot be decoded.
func (t *Type) encoded(json []byte) int {
	r := &reader{Reader: jsonvalue.Read(json), source: json}
	defer r.Close()
	if _, err := t.read(r); err != nil {
		return 0
	}
	return t.zero + len(json) + r.zeros
}

// suspicious reports whether a text contains something like a costly quantity. It may be a
// part of another text, such as a digest.
func suspicious(text []byte) bool {
	digits := 0
	for i, c := range text {
		switch {
		case '0' <= c && c <= '9' || c == '.':
			if digits++; digits > maxQuantity/2 {
				return true
			}
			continue
		case (c == 'e' || c == 'E') && digits > 0 && exponent(text[i+1:]) > maxExponent:
			return true
		}
		digits = 0
	}
	return false
}

// exponent returns the number of digits that the text starts with, after a sign.
func exponent(text []byte) (digits int) {
	if len(text) > 0 && (text[0] == '+' || text[0] == '-') {
		text = text[1:]
	}
	for digits < len(text) && '0' <= text[digits] && text[digits] <= '9' {
		digits++
	}
	return digits
}

// checkQuantity checks the JSON of a quantity: a string or a number.
func checkQuantity(value []byte) error {
	at := bytes.LastIndexAny(value, "eE")
	if len(value) > maxQuantity || at >= 0 && exponent(value[at+1:]) > maxExponent {
		return &QuantityError{string(value[:min(len(value), maxQuantity)])}
	}
	return nil
}

// checkTime checks the JSON of a time or a duration.
func checkTime(value []byte) error {
	if len(value) > maxTime {
		return &TimeError{string(value[:maxTime])}
	}
	return nil
}
