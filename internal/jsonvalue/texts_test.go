package jsonvalue

import (
	"strings"
	"testing"
)

func TestTextsCountEachTimeTheyAppear(t *testing.T) {
	type part struct {
		Name  string
		Role  *string
		Inner []part
		Other any
		Flags [1000]bool
	}
	text := strings.Repeat("x", 1000)
	type ring struct{ Next *ring }
	var around ring
	around.Next = &around
	for name, c := range map[string]struct {
		value any
		want  int
	}{
		"nil":               {nil, 0},
		"a number":          {5, 0},
		"a text":            {text, 1000},
		"bytes":             {[]byte(text), 1000},
		"a struct":          {part{Name: text, Role: &text, Other: []any{text, 1}}, 3000},
		"parts":             {[]part{{Name: text}, {Inner: []part{{Role: &text}}}}, 2000},
		"a map":             {map[string]any{"key": text}, 1003},
		"many":              {[]string{text, text, text, text, text, text}, 5000},
		"a value in itself": {&around, 0},
	} {
		got := TextSize(c.value, 4500)
		if c.want <= 4500 && got != c.want || c.want > 4500 && got <= 4500 {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}
