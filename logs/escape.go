package logs

import "gopf.dev/gopf/internal/terminal"

// longestText is the maximum length of a message or of one attribute, in bytes.
// longestBlock limits texts that are printed below their line, such as stacks. longestName
// limits each field of the object; names have at most 253 bytes in Kubernetes.
const (
	longestName  = 512
	longestText  = 8 << 10
	longestBlock = 64 << 10
)

// cut shortens a text to at most limit bytes.
func cut(s string, limit int) string { return terminal.Cut(s, limit) }

// escape makes a text printable in one line. Otherwise, the text of an object could forge
// log lines.
func escape(s string) string { return terminal.Escape(s) }

// escapeLines escapes everything except newlines.
func escapeLines(s string) string { return terminal.Lines(s) }
