package expr

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// Limits of a regular expression that is a value of an object. A short one can have millions of
// instructions, such as x{1000}x{1000}…, and each may run for each character of a text.
const (
	maxPattern      = 1000   // bytes
	maxInstructions = 10_000 // about 1 MiB
	patternCost     = 50     // of a byte
	foldCost        = 500    // of a byte, without regard to case: a set of characters takes milliseconds
	matchCost       = 20     // instructions that cost 1, for one character
)

// regex is a compiled regular expression.
type regex struct {
	pattern      string
	compiled     *regexp.Regexp
	instructions int
}

// newRegex compiles a regular expression of the author of the operator.
func newRegex(pattern string) (*regex, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err
	}
	compiled, err := regexp.Compile(pattern)
	return &regex{pattern, compiled, instructions(parsed)}, err
}

// regexOf compiles a regular expression of an object. It refuses those that would take much
// memory, before it compiles them.
func (m *meter) regexOf(pattern string) (*regex, error) {
	if m.regex != nil && m.regex.pattern == pattern {
		return m.regex, nil
	}
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("matches: the pattern has %d bytes, at most %d are allowed", len(pattern), maxPattern)
	}
	cost := patternCost
	if ignoresCase(pattern) {
		cost = foldCost
	}
	m.charge(cost * len(pattern))
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err
	}
	size := instructions(parsed)
	if size > maxInstructions {
		return nil, fmt.Errorf("matches: the pattern repeats too much: it has %d steps, at most %d are allowed", size, maxInstructions)
	}
	m.charge(size)
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	m.regex = &regex{pattern, compiled, size}
	return m.regex, nil
}

// ignoresCase reports whether a pattern may have the flag i, as in (?i).
func ignoresCase(pattern string) bool {
	for found := true; found; {
		if _, pattern, found = strings.Cut(pattern, "(?"); found {
			flags := pattern[:len(pattern)-len(strings.TrimLeft(pattern, "imsU-"))]
			if strings.Contains(flags, "i") {
				return true
			}
		}
	}
	return false
}

// instructions returns about how many instructions the program of a regular expression has.
// The parser refuses more than some millions.
func instructions(re *syntax.Regexp) int {
	size := 1
	for _, sub := range re.Sub {
		size += 1 + instructions(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		size += len(re.Rune)
	case syntax.OpRepeat:
		size *= 1 + max(re.Min, re.Max)
	}
	return size
}

// match is a call of matches. It pays before it runs. A constant pattern is compiled only once.
type match struct {
	id            int64
	text, pattern interpreter.InterpretableV2
	constant      *regex // nil means that the pattern is no constant
}

func newMatch(x interpreter.InterpretableCall) (*match, error) {
	m := &match{id: x.ID(), text: x.Args()[0], pattern: x.Args()[1]}
	if constant, ok := m.pattern.(interpreter.InterpretableConst); ok {
		pattern, isText := constant.Value().(types.String)
		if !isText {
			return m, nil
		}
		var err error
		if m.constant, err = newRegex(string(pattern)); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// ID implements [interpreter.Interpretable].
func (x *match) ID() int64 { return x.id }

// Eval implements [interpreter.Interpretable].
func (x *match) Eval(vars interpreter.Activation) ref.Val { return x.Exec(interpreter.AsFrame(vars)) }

// Exec implements [interpreter.InterpretableV2].
func (x *match) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	value, pattern := x.text.Exec(frame), x.pattern.Exec(frame)
	for _, v := range []ref.Val{value, pattern} {
		if types.IsUnknownOrError(v) {
			return v
		}
	}
	text, isText := value.(types.String)
	expression, both := pattern.(types.String)
	m := meterOf(frame)
	if !isText || !both || m == nil {
		return types.LabelErrNode(x.id, types.NewErr("no such overload: %v.matches(%v)", value.Type(), pattern.Type()))
	}
	r := x.constant
	if r == nil {
		var err error
		if r, err = m.regexOf(string(expression)); err != nil {
			return types.LabelErrNode(x.id, types.WrapErr(err))
		}
	}
	m.charge(r.instructions * (1 + len(text)) / matchCost)
	return types.Bool(r.compiled.MatchString(string(text)))
}
