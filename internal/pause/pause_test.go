package pause

import (
	"testing"
	"time"
)

func TestEveryValuePauses(t *testing.T) {
	end := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]Pause{
		"true":                       {},
		"":                           {},
		"moving the data":            {Reason: "moving the data"},
		"until 2026-11-20T12:00:00Z": {Until: end},
		"until 2026-11-20T12:00:00Z: moving the data": {Until: end, Reason: "moving the data"},
		"until tomorrow":                  {Reason: "until tomorrow", Problem: "the end of the pause is not a time like 2026-11-20T12:00:00Z, so the pause has no end"},
		"until 9999-12-31T23:59:59-23:59": {Reason: "until 9999-12-31T23:59:59-23:59", Problem: "the end of the pause is not a time like 2026-11-20T12:00:00Z, so the pause has no end"},
		"until 0001-01-01T00:00:00Z":      {Reason: "until 0001-01-01T00:00:00Z", Problem: "the end of the pause is not a time like 2026-11-20T12:00:00Z, so the pause has no end"},
		"until 0000-01-01T00:00:00+23:59": {Reason: "until 0000-01-01T00:00:00+23:59", Problem: "the end of the pause is not a time like 2026-11-20T12:00:00Z, so the pause has no end"},
		"False":                           {Problem: "every value pauses the object; remove the annotation to continue"},
	} {
		if got := Parse(value); !got.Until.Equal(want.Until) || got.Reason != want.Reason || got.Problem != want.Problem {
			t.Errorf("%q: got %+v, want %+v", value, got, want)
		}
		if Of(map[string]any{Key: value}, nil, end.Add(-time.Second)) == nil {
			t.Errorf("%q does not pause", value)
		}
	}
}

func TestAPauseEnds(t *testing.T) {
	end := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	annotations := map[string]any{Key: Format(end, "why")}
	if p := Of(annotations, nil, end.Add(-time.Second)); p == nil || p.Reason != "why" || !p.Until.Equal(end) {
		t.Errorf("before the end: got %+v", p)
	}
	if p := Of(annotations, nil, end); p != nil {
		t.Errorf("at the end: got %+v", p)
	}
}

func TestThePauseThatEndsLastCounts(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	short, long := Format(now.Add(time.Minute), "short"), Format(now.Add(time.Hour), "long")
	for name, c := range map[string]struct {
		annotations map[string]any
		want        string
	}{
		"the general one":         {map[string]any{Key: long, "a.io/pause": short}, Key},
		"the own one":             {map[string]any{Key: short, "a.io/pause": long}, "a.io/pause"},
		"one without an end":      {map[string]any{Key: long, "a.io/pause": "true"}, "a.io/pause"},
		"that of another":         {map[string]any{"b.io/pause": "true"}, ""},
		"similar names":           {map[string]any{"a.io/pauses": "true", "a.iopause": "true", "xa.io/pause": "true", "a.io/xpause": "true"}, ""},
		"the record of a handler": {map[string]any{"a.io/pause": `{"started":"x"}`}, ""},
		"no text":                 {map[string]any{Key: 1}, ""},
		"nothing":                 {nil, ""},
	} {
		got := ""
		if p := Of(c.annotations, []string{"a.io"}, now); p != nil {
			got = p.Key
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestFormatIsReadByParse(t *testing.T) {
	end := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, want := range []Pause{{}, {Reason: "a: b"}, {Until: end}, {Until: end, Reason: "a: b"}} {
		if got := Parse(Format(want.Until, want.Reason)); !got.Until.Equal(want.Until) || got.Reason != want.Reason || got.Problem != "" {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func TestObjectsWithoutAPauseCostNoAllocation(t *testing.T) {
	annotations := map[string]any{"a.io/last-handled-configuration": "{}", "note": "x"}
	prefixes := []string{"a.io", "kopf.zalando.org"}
	now := time.Now()
	if n := testing.AllocsPerRun(100, func() { Of(annotations, prefixes, now) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestTheSameValueIsTheSamePause(t *testing.T) {
	const value = "until 2026-11-20T12:00:00+05:30: moving"
	if first, second := Parse(value), Parse(value); first != second {
		t.Errorf("%v is not %v", first, second)
	}
}
