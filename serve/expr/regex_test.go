package expr

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// A tenant chooses the pattern. A short one can take gigabytes when it is compiled, or hours
// when it runs, and nothing can interrupt it.
func TestPatternsOfObjectsAreBounded(t *testing.T) {
	for name, c := range map[string]struct{ pattern, text, want string }{
		"long":     {strings.Repeat("x{0,1000}", 1600), "xxx", "has 14400 bytes, at most 1000"},
		"repeated": {strings.Repeat("x{0,1000}", 100) + "y", strings.Repeat("x", 10_000), "repeats too much"},
		"classes":  {strings.Repeat(`\pL{1000}`, 100), "xxx", "repeats too much"},
		"nested":   {"((x{30}){30}){30}", "xxx", ""},
		"slow":     {strings.Repeat("x{0,40}", 40) + "y", strings.Repeat("x", 10_000), errCost.Error()},
		"any case": {"(?i)" + strings.Repeat(`[B-\x{10fff0}]`, 71), "xxx", ""},
		"invalid":  {"(", "xxx", "missing closing )"},
		"text":     {"^[a-z]+$", strings.Repeat("x", 1<<20), ""},
		"empty":    {"", "", ""},
	} {
		took, used, err := evaluate(t.Context(), t, `object.text.matches(object.pattern) || true`, map[string]any{"pattern": c.pattern, "text": c.text})
		if c.want != "" { // || forgives other errors than those of limits
			took, used, err = evaluate(t.Context(), t, `object.text.matches(object.pattern)`, map[string]any{"pattern": c.pattern, "text": c.text})
		}
		if c.want == "" && err != nil && !errors.Is(err, errCost) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got the error %v", name, err)
		}
		if took > 5*time.Second || used > 64 {
			t.Errorf("%s: it took %v and %d MiB", name, took, used)
		}
	}
}

func TestManyPatternsHaveCosts(t *testing.T) {
	var patterns []any
	for range 200 {
		patterns = append(patterns, "(?i)"+strings.Repeat(`[B-\x{10fff0}]`, 10), strings.Repeat("x{0,90}", 25))
	}
	took, _, err := evaluate(context.Background(), t, `object.p.all(p, "x".matches(p) || true)`, map[string]any{"p": patterns})
	if !errors.Is(err, errCost) || took > 5*time.Second {
		t.Errorf("got the error %v after %v", err, took)
	}
}

func TestMatchesGivesTheSameResults(t *testing.T) {
	object := map[string]any{"s": "web-1", "p": "^[a-z]+-[0-9]$", "n": int64(1)}
	for text, want := range map[string]any{
		`object.s.matches("^[a-z]+-[0-9]$")`:                        true,
		`object.s.matches(object.p)`:                                true,
		`matches(object.s, object.p)`:                               true,
		`"WEB".matches("(?i)w")`:                                    true,
		`object.s.matches("^" + object.s + "$")`:                    true,
		`["a", "b"].all(x, ["^a$", "^b$"].exists(p, x.matches(p)))`: true,
		`object.s.matches("x")`:                                     false,
		`object.none.matches("x") || true`:                          true,
	} {
		x, err := env(t).Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := x.Eval(t.Context(), map[string]any{"object": object}); err != nil || got != want {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
	if _, _, err := evaluate(t.Context(), t, `object.n.matches("x")`, object); err == nil || !strings.Contains(err.Error(), "no such overload") {
		t.Errorf("got the error %v", err)
	}
	if _, err := env(t).Compile(`object.s.matches("(")`); err == nil {
		t.Error("an invalid pattern is compiled")
	}
}
