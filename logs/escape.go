package logs

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// longestText is the maximum length of a message or of one attribute, in bytes.
// longestBlock limits texts that are printed below their line, such as stacks. longestName
// limits each field of the object; names have at most 253 bytes in Kubernetes.
const (
	longestName  = 512
	longestText  = 8 << 10
	longestBlock = 64 << 10
)

// cut shortens s to at most limit bytes, with an ellipsis in place of the rest. It does not
// split characters.
func cut(s string, limit int) string {
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

// escape escapes everything that a terminal or a line reader could misinterpret: newlines,
// control characters (and thus escape sequences), marks that change the writing direction,
// and bytes that are not UTF-8. Otherwise, the text of an object could forge log lines.
func escape(s string) string {
	if !strings.ContainsFunc(s, unprintable) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if unprintable(r) {
			quoted := strconv.Quote(s[:size])
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	return b.String()
}

// unprintable reports whether a character must be escaped. Bytes that are not
// UTF-8 decode to the replacement character.
func unprintable(r rune) bool {
	return r != '\t' && !unicode.IsPrint(r) || r == utf8.RuneError
}

// escapeLines escapes everything except newlines.
func escapeLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = escape(line)
	}
	return strings.Join(lines, "\n")
}
