package python

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// stringPrefix returns the length of the prefix if s begins with a string literal, such as 2
// for rb"…". Otherwise it returns -1.
func stringPrefix(s string) int {
	for i := range min(3, len(s)) {
		switch s[i] {
		case '"', '\'':
			return i
		case 'r', 'R', 'b', 'B', 'u', 'U', 'f', 'F', 't', 'T':
		default:
			return -1
		}
	}
	return -1
}

// quotes returns the prefix of a literal in lower case, and its quotes.
func quotes(s string) (prefix, quote string) {
	n := stringPrefix(s)
	quote = s[n : n+1]
	if strings.HasPrefix(s[n:], strings.Repeat(quote, 3)) {
		quote = strings.Repeat(quote, 3)
	}
	return strings.ToLower(s[:n]), quote
}

// stringEnd returns the position after the string literal at pos. Expressions in f-strings
// may contain strings with the same quotes.
func (l *lexer) stringEnd(pos, depth int) (int, error) {
	prefix, quote := quotes(l.src[pos:])
	unclosed := &SyntaxError{l.line + strings.Count(l.src[l.pos:pos], "\n"), "the string is never closed"}
	if depth > maxBlocks {
		return 0, unclosed
	}
	formatted := strings.ContainsAny(prefix, "ft")
	for i := pos + len(prefix) + len(quote); i < len(l.src); {
		if !l.step() {
			return 0, unclosed
		}
		switch c := l.src[i]; {
		case strings.HasPrefix(l.src[i:], quote):
			return i + len(quote), nil
		case c == '\\':
			i += 2
		case c == '\n' && len(quote) == 1:
			return 0, unclosed
		case formatted && strings.HasPrefix(l.src[i:], "{{"):
			i += 2
		case formatted && c == '{':
			i = l.fieldEnd(i, quote, depth)
		default:
			i++
		}
	}
	return 0, unclosed
}

// fieldEnd returns the position after the replacement field of an f-string that begins at
// pos. If the field has no end, it returns the position of the closing quotes, or pos+1.
func (l *lexer) fieldEnd(pos int, quote string, depth int) int {
	level, spec := 0, false
	for i := pos; i < len(l.src); {
		if !l.step() {
			return pos + 1
		}
		switch c := l.src[i]; {
		case c == '{' || c == '(' || c == '[':
			level++
			i++
		case c == '}' || c == ')' || c == ']':
			level--
			i++
			if level <= 0 {
				return i
			}
		case c == ':' && level == 1:
			spec = true
			i++
		case spec && level == 1 && strings.HasPrefix(l.src[i:], quote):
			return i
		case c == '\n' && len(quote) == 1:
			return pos + 1
		case !spec && (c == '"' || c == '\''):
			end, err := l.stringEnd(i, depth+1)
			if err != nil {
				return pos + 1 // an older Python ends the outer string here
			}
			i = end
		default:
			i++
		}
	}
	return pos + 1
}

// part is a part of an f-string: text, or the source of an expression.
type part struct {
	text       string
	expression bool
	format     string // after the expression, such as "!r" or ":>10"
}

// literal returns the value of a string literal. For f-strings, it returns their parts.
func literal(s string) (value string, parts []part, bytes bool) {
	prefix, quote := quotes(s)
	raw := strings.Contains(prefix, "r")
	inner := s[len(prefix)+len(quote):]
	inner = inner[:max(0, len(inner)-len(quote))]
	if !strings.ContainsAny(prefix, "ft") {
		if !raw {
			inner = unescape(inner)
		}
		return inner, nil, strings.Contains(prefix, "b")
	}
	l := &lexer{src: s}
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			value := text.String()
			if !raw {
				value = unescape(value)
			}
			parts = append(parts, part{text: value})
			text.Reset()
		}
	}
	start := len(prefix) + len(quote)
	for i := start; i < start+len(inner); {
		switch {
		case strings.HasPrefix(s[i:], "{{") || strings.HasPrefix(s[i:], "}}"):
			text.WriteByte(s[i])
			i += 2
		case s[i] == '{':
			end := l.fieldEnd(i, quote, 0)
			if end <= i+1 || end > start+len(inner) || s[end-1] != '}' {
				return "", []part{{text: s[i:], expression: true}}, false
			}
			flush()
			parts = append(parts, field(s[i+1:end-1]))
			i = end
		case s[i] == '\\' && !raw && i+1 < start+len(inner):
			text.WriteString(s[i : i+2])
			i += 2
		default:
			text.WriteByte(s[i])
			i++
		}
	}
	flush()
	return "", parts, false
}

// field splits the inner text of a replacement field into its expression and its format.
func field(s string) part {
	level := 0
	for i := range len(s) {
		switch s[i] {
		case '(', '[', '{':
			level++
		case ')', ']', '}':
			level--
		case '"', '\'':
			if level == 0 && strings.ContainsAny(s[:i], "\"'") {
				return part{text: s, expression: true} // a colon may be inside of the string
			}
		case ':':
			if level == 0 {
				return part{strings.TrimSpace(s[:i]), true, s[i:]}
			}
		case '!':
			if level == 0 && !strings.HasPrefix(s[i:], "!=") {
				return part{strings.TrimSpace(s[:i]), true, s[i:]}
			}
		}
	}
	return part{text: strings.TrimSpace(s), expression: true}
}

// unescape replaces the escape sequences of a string that is not raw.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if simple, ok := escapes[s[i]]; ok {
			b.WriteString(simple)
			continue
		}
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[i]]
		if end := i + 1 + digits; digits > 0 && end <= len(s) {
			if n, err := strconv.ParseUint(s[i+1:end], 16, 32); err == nil && utf8.ValidRune(rune(n)) {
				b.WriteRune(rune(n))
				i = end - 1
				continue
			}
		}
		b.WriteByte('\\')
		b.WriteByte(s[i])
	}
	return b.String()
}

var escapes = map[byte]string{
	'\n': "", '\\': "\\", '\'': "'", '"': "\"", 'n': "\n", 'r': "\r", 't': "\t", 'a': "\a", 'b': "\b", 'f': "\f", 'v': "\v", '0': "\x00",
}

// step counts a step inside of a string. It reports false when there were too many: strings
// inside of f-strings are read more than once if the outer one is malformed, and many levels
// of them would take forever.
func (l *lexer) step() bool {
	l.steps++
	return l.steps < 20*len(l.src)+1000
}
