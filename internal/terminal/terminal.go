// Package terminal makes texts of objects safe to print: it escapes and cuts them. Clients of
// the cluster choose these texts. Without escapes, they could send commands to the terminal
// of the reader, or forge lines of the output.
package terminal

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Escape escapes everything that a terminal or a line reader could misinterpret: newlines,
// control characters (and thus escape sequences), marks that change the writing direction,
// and bytes that are not UTF-8. Tabs stay.
func Escape(s string) string { return replace(s, unprintable, quote) }

// Line is [Escape], and replaces tabs by spaces. The result is one cell of a table.
func Line(s string) string { return Escape(strings.ReplaceAll(s, "\t", " ")) }

// Lines escapes everything except newlines and tabs.
func Lines(s string) string {
	return replace(s, func(r rune) bool { return r != '\n' && unprintable(r) }, quote)
}

// JSON escapes a JSON text. Its meaning stays the same.
func JSON(text string) string {
	return replace(text, func(r rune) bool { return r != '\n' && r != '\t' && r != '\r' && !unicode.IsPrint(r) }, quoteJSON)
}

// Cut shortens s to at most limit bytes, with an ellipsis in place of the rest. It does not
// split characters.
func Cut(s string, limit int) string {
	const ellipsis = "…"
	if len(s) <= limit {
		return s
	}
	end := limit - len(ellipsis)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + ellipsis
}

// CutMiddle shortens s to at most limit bytes, with an ellipsis in place of its middle: errors
// quote a value in the middle, and end with the reason. The result is s itself or a
// copy. It does not split characters.
func CutMiddle(s string, limit int) string {
	const ellipsis = "..."
	if len(s) <= limit {
		return s
	}
	head := limit/2 - 1
	tail := len(s) - (limit - head - len(ellipsis))
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return s[:head] + ellipsis + s[tail:]
}

// unprintable reports whether a character must be escaped. Bytes that are not UTF-8 decode
// to the replacement character.
func unprintable(r rune) bool {
	return r != '\t' && !unicode.IsPrint(r) || r == utf8.RuneError
}

// replace replaces the characters that are bad. quote gets the bytes of one.
func replace(s string, bad func(rune) bool, quote func(string) string) string {
	if plain(s) || !strings.ContainsFunc(s, bad) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if bad(r) {
			b.WriteString(quote(s[:size]))
		} else {
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	return b.String()
}

// plain reports whether a text has only printable ASCII characters, as nearly all texts do.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// quote escapes one character as in Go strings.
func quote(s string) string {
	quoted := strconv.Quote(s)
	return quoted[1 : len(quoted)-1]
}

// quoteJSON escapes one character as in JSON strings.
func quoteJSON(s string) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune(s)) {
		text := strconv.FormatUint(uint64(unit), 16)
		b.WriteString(`\u` + strings.Repeat("0", 4-len(text)) + text)
	}
	return b.String()
}
