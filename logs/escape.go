package logs

import (
	"unicode/utf8"

	"gopf.dev/gopf/internal/terminal"
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

// escape makes a text printable in one line. Otherwise, the text of an object could forge
// log lines.
func escape(s string) string { return terminal.Escape(s) }

// escapeLines escapes everything except newlines.
func escapeLines(s string) string { return terminal.Lines(s) }
