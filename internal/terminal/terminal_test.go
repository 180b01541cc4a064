package terminal_test

import (
	"encoding/json"
	"testing"

	"gopf.dev/gopf/internal/terminal"
)

func TestTextsOfObjectsCannotControlATerminal(t *testing.T) {
	for text, want := range map[string]string{
		"plain – ünïcode 世界":      "plain – ünïcode 世界",
		"\x1b[2J\x1b]0;title\x07": `\x1b[2J\x1b]0;title\a`,
		"c1 \u009b2J":             `c1 \u009b2J`,
		"a\nb\r\tc":               `a\nb\r c`,
		"right \u202e to left":    `right \u202e to left`,
		"bad \xff":                `bad \xff`,
		"tag \U000e0041":          `tag \U000e0041`,
	} {
		if got := terminal.Line(text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got, want := terminal.Lines("a\n\tb\x1b"), "a\n\tb\\x1b"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLongTextsLoseTheirMiddle(t *testing.T) {
	for _, test := range []struct {
		text string
		want string
	}{
		{"0123456789", "0123456789"},
		{"0123456789a", "0123...89a"},
		{"ааааааа", "аа...а"}, // of two bytes each
		{"aаааааа", "aа...а"},
	} {
		if got := terminal.CutMiddle(test.text, 10); got != test.want {
			t.Errorf("%s: got %q", test.text, got)
		}
	}
}

func TestEscapedJSONHasTheSameMeaning(t *testing.T) {
	const value = "\x1b[2J \u009b \x7f \u202e \U000e0041 \ufffd plain 世界 \n"
	raw, err := json.Marshal(map[string]string{"a": value})
	if err != nil {
		t.Fatal(err)
	}
	escaped := terminal.JSON(string(raw) + "\n")
	if terminal.JSON(escaped) != escaped || terminal.Lines(escaped) == "" {
		t.Errorf("%q is not safe", escaped)
	}
	for _, r := range escaped {
		if r == '\u009b' || r == '\x7f' || r == '\u202e' || r == '\U000e0041' {
			t.Errorf("%q has the character %q", escaped, r)
		}
	}
	var got map[string]string
	if err := json.Unmarshal([]byte(escaped), &got); err != nil || got["a"] != value {
		t.Errorf("got %q (%v), want %q", got["a"], err, value)
	}
}
