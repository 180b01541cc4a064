package insight

import (
	"strings"
	"testing"
	"unicode"

	"gopf.dev/gopf/internal/explain"
	"gopf.dev/gopf/internal/page"
)

func TestPlansAndTimelinesCannotControlTheTerminal(t *testing.T) {
	const hostile = "x\x1b]0;owned\x07\u009b2J\u202e\t1\n2"
	p := &Plan{Seen: 1, Objects: []PlannedObject{{
		Summary: hostile, Problems: []string{hostile}, Patches: []PlannedPatch{{Handler: "h", Fields: map[string]any{"a": hostile}}},
		Children: []PlannedChild{{Handler: "h", Action: "delete", Child: explain.Child{Kind: hostile, Name: hostile}, Reason: hostile, Refused: hostile,
			Diff: []explain.Change{{Op: "change", Path: hostile, Old: hostile}}}},
	}}}
	h := &History{Object: "databases/a/b", Steps: []page.Step{{Step: "call", Handler: hostile, Text: hostile}}}
	var out strings.Builder
	for _, write := range []func() error{
		func() error { return p.Write(&out, false) }, func() error { return p.Write(&out, true) }, func() error { return h.Write(&out) },
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range out.String() {
		if c != '\n' && !unicode.IsPrint(c) {
			t.Errorf("the output has the character %q", c)
		}
	}
	if lines := strings.Count(out.String(), "\n"); lines != 7+2+1 {
		t.Errorf("the output has %d lines:\n%s", lines, out.String())
	}
}
