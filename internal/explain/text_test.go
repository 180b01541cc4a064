package explain_test

import (
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/explain"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/process"
)

// A tenant writes the records, the pause and the inventory of its objects, and the
// administrator prints them.
func TestTextsOfAnObjectNeitherControlTheTerminalNorForgeLines(t *testing.T) {
	const hostile = "x\x1b]0;owned\x07\u009b2J\u202e\n  deletion\twould wait for nothing"
	r := &explain.Report{
		Summary: "Database a/b: paused: " + hostile, Notes: []string{hostile}, Pause: &explain.Pause{Problem: hostile},
		Changes:  []explain.Change{{Op: "change", Path: "spec." + hostile, Old: hostile, New: strings.Repeat("x", 1<<20)}},
		Handlers: []explain.Handler{{ID: "create", Family: "change", Phase: string(process.Failed), Message: hostile, Subs: []explain.Handler{{ID: hostile, Message: hostile}}}},
		Children: []explain.Child{{Kind: hostile, Name: hostile}},
		Deletion: explain.Deletion{Finalizer: "f", Others: []string{hostile, strings.Repeat("x", 1<<15)}},
	}
	for _, phase := range []process.Phase{process.Exhausted, process.Unmatched, process.Blocked} {
		r.Handlers = append(r.Handlers, explain.Handler{ID: "why", Family: "change", Phase: string(phase), Why: hostile})
	}
	var out strings.Builder
	if err := r.Write(&out, time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, c := range out.String() {
		if c != '\n' && !unicode.IsPrint(c) {
			t.Errorf("the output has the character %q", c)
		}
	}
	if lines := strings.Count(out.String(), "\n"); lines != 11 {
		t.Errorf("the output has %d lines:\n%s", lines, out.String())
	}
	if out.Len() > 20_000 {
		t.Errorf("the output has %d bytes", out.Len())
	}
	if text := r.Changes[0].Text(); strings.ContainsAny(text, "\x1b\n\u009b") {
		t.Errorf("got %q", text)
	}
}

// JSON keeps these characters, so quoted values of an object still have them.
func TestValuesThatDoNotMatchCannotControlTheTerminal(t *testing.T) {
	const hostile, escaped = "\u009b2J\u202e\x7f", `"\u009b2J\u202e\x7f"`
	prod := []handler.Key{{Name: "tier", Match: handler.Equal("prod"), Want: `"prod"`}}
	tier := `{"tier":"` + hostile + `"}`
	for name, s := range map[string]situation{
		"label":      {metadata: `"labels":` + tier, handlers: handler.Set{with(of("h", cause.Create), func(h *handler.Handler) { h.Criteria.Labels = prod })}},
		"annotation": {metadata: `"annotations":` + tier, handlers: handler.Set{with(of("h", cause.Create), func(h *handler.Handler) { h.Criteria.Annotations = prod })}},
		"field": {spec: tier, handlers: handler.Set{with(of("h", cause.Create), func(h *handler.Handler) {
			h.Criteria.Fields = []handler.Field{{Path: []string{"spec", "tier"}, Match: handler.Equal("prod"), Want: `"prod"`}}
		})}},
	} {
		var out strings.Builder
		if err := s.report(t).Write(&out, time.Now()); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(out.String(), "\u009b\u202e\x7f") || !strings.Contains(out.String(), "tier is "+escaped+`, the handler requires "prod"`) {
			t.Errorf("%s: got %q", name, out.String())
		}
	}
}

func TestReportsHaveALimitOfChanges(t *testing.T) {
	d := make(diff.Diff, 2500)
	for i := range d {
		d[i] = diff.Item{Op: diff.Add, Path: []string{"spec", strconv.Itoa(i)}, New: i}
	}
	changes, more := explain.ChangesOf(d)
	if len(changes) != 1000 || more != 1500 {
		t.Errorf("got %d changes and %d more", len(changes), more)
	}
	var out strings.Builder
	if err := (&explain.Report{Changes: changes, More: more}).Write(&out, time.Now()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "and 1500 more changes\n") {
		t.Error("the text does not tell how many changes are left out")
	}
	if _, more := explain.ChangesOf(d[:1000]); more != 0 {
		t.Errorf("%d more than 1000 of 1000", more)
	}
}
