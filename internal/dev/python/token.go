// Package python reads the structure of Python source files: functions with their decorators
// and parameters, imports, assignments and simple expressions. It needs no Python.
//
// The reader is tolerant: a statement or expression that it does not understand, such as a
// print statement of Python 2 or a comprehension, is kept as text. It returns an error only if
// the structure of the file is lost: brackets or strings that do not end, and indentation that
// matches no block. It never runs code.
package python

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of the input. Larger files are refused.
const (
	maxSize   = 8 << 20
	maxBlocks = 100 // levels of indentation; the limit of Python itself
	maxNested = 200 // brackets inside of brackets; the limit of Python itself
)

// SyntaxError is a mistake in a source file that hides its structure.
type SyntaxError struct {
	Line int
	Text string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Text) }

type tokenKind uint8

const (
	tokenName tokenKind = iota
	tokenNumber
	tokenString
	tokenOp
	tokenNewline
	tokenIndent
	tokenDedent
)

// token is a part of the source: src[pos:end].
type token struct {
	kind     tokenKind
	text     string
	line     int // of its first character
	pos, end int
}

// lexer splits a source file into tokens. Line breaks inside of brackets are not tokens.
type lexer struct {
	src     string
	pos     int
	line    int
	open    []token // brackets that are not closed yet
	columns []int   // indentation of the enclosing blocks
	steps   int     // that were made inside of strings; see step
	tokens  []token
}

func tokenize(src string) ([]token, error) {
	if len(src) > maxSize {
		return nil, &SyntaxError{1, fmt.Sprintf("the file has more than %d MiB", maxSize>>20)}
	}
	if strings.ContainsRune(src, 0) || !utf8.ValidString(src) {
		return nil, &SyntaxError{1, "the file is not UTF-8 text"}
	}
	l := &lexer{src: src, line: 1, columns: []int{0}}
	l.pos = len(src) - len(strings.TrimPrefix(src, "\ufeff"))
	for l.pos < len(l.src) {
		if err := l.logicalLine(); err != nil {
			return nil, err
		}
	}
	for range l.columns[1:] {
		l.add(tokenDedent, l.pos)
	}
	return l.tokens, nil
}

// add appends the token that ends at end, and continues there.
func (l *lexer) add(kind tokenKind, end int) {
	l.tokens = append(l.tokens, token{kind, l.src[l.pos:end], l.line, l.pos, end})
	l.line += strings.Count(l.src[l.pos:end], "\n")
	l.pos = end
}

// logicalLine reads a line with all its continuations. Blank lines have no tokens.
func (l *lexer) logicalLine() error {
	column := 0
	for l.pos < len(l.src) {
		switch l.src[l.pos] {
		case ' ':
			column++
		case '\t':
			column += 8 - column%8
		case '\f':
			column = 0
		default:
			goto indented
		}
		l.pos++
	}
indented:
	if rest := l.src[l.pos:]; rest == "" || rest[0] == '#' || rest[0] == '\n' || rest[0] == '\r' {
		l.skipComment()
		l.skipNewline()
		return nil
	}
	if err := l.indent(column); err != nil {
		return err
	}
	return l.statement()
}

func (l *lexer) indent(column int) error {
	if column > l.columns[len(l.columns)-1] {
		if len(l.columns) > maxBlocks {
			return &SyntaxError{l.line, "too many levels of indentation"}
		}
		l.columns = append(l.columns, column)
		l.add(tokenIndent, l.pos)
	}
	for column < l.columns[len(l.columns)-1] {
		l.columns = l.columns[:len(l.columns)-1]
		l.add(tokenDedent, l.pos)
	}
	if column != l.columns[len(l.columns)-1] {
		return &SyntaxError{l.line, "the indentation matches no enclosing block"}
	}
	return nil
}

// statement reads tokens up to the line break that ends the statement.
func (l *lexer) statement() error {
	for l.pos < len(l.src) {
		c := l.src[l.pos]
		switch {
		case c == ' ' || c == '\t' || c == '\f':
			l.pos++
		case c == '#':
			l.skipComment()
		case c == '\\' && l.skipContinuation():
		case c == '\n' || c == '\r':
			if len(l.open) == 0 {
				l.add(tokenNewline, l.pos)
				l.skipNewline()
				return nil
			}
			l.skipNewline()
		default:
			if err := l.token(); err != nil {
				return err
			}
		}
	}
	if n := len(l.open); n > 0 {
		return &SyntaxError{l.open[n-1].line, fmt.Sprintf("the bracket %s is never closed", l.open[n-1].text)}
	}
	l.add(tokenNewline, l.pos)
	return nil
}

func (l *lexer) skipComment() {
	for l.pos < len(l.src) && l.src[l.pos] != '\n' && l.src[l.pos] != '\r' {
		l.pos++
	}
}

func (l *lexer) skipNewline() {
	if strings.HasPrefix(l.src[l.pos:], "\r\n") {
		l.pos++
	}
	if l.pos < len(l.src) {
		l.pos++
		l.line++
	}
}

// skipContinuation skips a backslash at the end of a line.
func (l *lexer) skipContinuation() bool {
	rest := l.src[l.pos+1:]
	if !strings.HasPrefix(rest, "\n") && !strings.HasPrefix(rest, "\r") {
		return false
	}
	l.pos++
	l.skipNewline()
	return true
}

func (l *lexer) token() error {
	rest := l.src[l.pos:]
	c, size := utf8.DecodeRuneInString(rest)
	if n := stringPrefix(rest); n >= 0 {
		end, err := l.stringEnd(l.pos, 0)
		if err != nil {
			return err
		}
		l.add(tokenString, end)
		return nil
	}
	switch {
	case c == '_' || unicode.IsLetter(c):
		l.add(tokenName, l.pos+nameLength(rest))
	case c >= '0' && c <= '9' || c == '.' && len(rest) > 1 && rest[1] >= '0' && rest[1] <= '9':
		l.add(tokenNumber, l.pos+numberLength(rest))
	case strings.ContainsRune("([{", c):
		if len(l.open) >= maxNested {
			return &SyntaxError{l.line, "too many nested brackets"}
		}
		l.open = append(l.open, token{text: rest[:1], line: l.line})
		l.add(tokenOp, l.pos+1)
	case strings.ContainsRune(")]}", c):
		if n := len(l.open); n == 0 || closing(l.open[n-1].text) != rest[:1] {
			return &SyntaxError{l.line, fmt.Sprintf("the bracket %s closes nothing", rest[:1])}
		}
		l.open = l.open[:len(l.open)-1]
		l.add(tokenOp, l.pos+1)
	default:
		for _, op := range operators {
			if strings.HasPrefix(rest, op) {
				l.add(tokenOp, l.pos+len(op))
				return nil
			}
		}
		l.add(tokenOp, l.pos+size)
	}
	return nil
}

// operators with more than one character, the longest first.
var operators = []string{"**=", "//=", ">>=", "<<=", "...", "**", "//", ">>", "<<", "->", ":=", "==", "!=", "<>", "<=", ">=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "@="}

func closing(open string) string {
	return map[string]string{"(": ")", "[": "]", "{": "}"}[open]
}

func nameLength(s string) int {
	for i, c := range s {
		if c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c) && !unicode.Is(unicode.M, c) {
			return i
		}
	}
	return len(s)
}

func numberLength(s string) int {
	for i := range len(s) {
		c := s[i]
		sign := (c == '+' || c == '-') && i > 0 && (s[i-1]|0x20) == 'e' && !strings.HasPrefix(strings.ToLower(s), "0x")
		if c != '_' && c != '.' && !sign && (c < '0' || c > '9') && ((c|0x20) < 'a' || (c|0x20) > 'z') {
			return i
		}
	}
	return len(s)
}
