package gopf

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"gopf.dev/gopf/internal/handler"
)

func TestOutermostClassifiedErrorDecides(t *testing.T) {
	boom := errors.New("boom")
	cases := map[string]struct {
		err  error
		want string
	}{
		"none":                        {nil, "none"},
		"plain":                       {boom, "plain"},
		"temporary":                   {RetryAfter(time.Second, boom), "temporary 1s"},
		"permanent":                   {Permanent(boom), "permanent"},
		"waiting":                     {Wait(time.Minute, "for %s", "it"), "waiting 1m0s"},
		"wrapped":                     {fmt.Errorf("make it: %w", RetryAfter(time.Second, boom)), "temporary 1s"},
		"temporary made permanent":    {Permanent(fmt.Errorf("no more: %w", RetryAfter(time.Second, boom))), "permanent"},
		"permanent made temporary":    {RetryAfter(time.Second, Permanent(boom)), "temporary 1s"},
		"joined, the first one":       {errors.Join(boom, Permanent(boom), RetryAfter(time.Second, boom)), "permanent"},
		"joined, none classified":     {errors.Join(boom, boom), "plain"},
		"sub-handlers are unfinished": {fmt.Errorf("x: %w", &handler.UnfinishedError{Delay: time.Second}), "unfinished"},
		"temporary nothing":           {RetryAfter(time.Second, nil), "none"},
		"permanent nothing":           {Permanent(nil), "none"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := "plain"
			switch e := classify(c.err).(type) {
			case nil:
				got = "none"
			case *handler.TemporaryError:
				got = "temporary " + e.Delay.Is.String()
				if e.Wait {
					got = "waiting " + e.Delay.Is.String()
				}
				if e.Error() != c.err.Error() {
					t.Errorf("the text changed to %q", e)
				}
			case *handler.PermanentError:
				got = "permanent"
			case *handler.UnfinishedError:
				got = "unfinished"
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestMatchersCombine(t *testing.T) {
	for name, c := range map[string]struct {
		m       Matcher
		value   any
		present bool
		want    bool
	}{
		"is":                   {Is("x"), "x", true, true},
		"is not":               {Is("x"), "y", true, false},
		"is, but absent":       {Is(nil), nil, false, false},
		"a number":             {Is(3), int64(3), true, true},
		"a struct":             {Is(struct{ A int }{1}), map[string]any{"A": int64(1)}, true, true},
		"present":              {Present, nil, true, true},
		"absent":               {Absent, nil, false, true},
		"not":                  {Not(Is("x")), "y", true, true},
		"all of":               {AllOf(Present, Not(Is("x"))), "y", true, true},
		"not all of":           {AllOf(Present, Is("x")), "y", true, false},
		"any of":               {AnyOf(Is("x"), Is("y")), "y", true, true},
		"none of":              {Not(AnyOf(Is("x"), Is("y"))), "z", true, true},
		"not none of":          {Not(AnyOf(Is("x"), Is("y"))), "x", true, false},
		"matching by function": {Matching(func(v any, _ bool) bool { return v == "q" }), "q", true, true},
	} {
		if got := c.m.match(c.value, c.present); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
