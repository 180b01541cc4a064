package execute

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"gopf.dev/gopf/internal/handler"
)

// Results of Go may share a text of the object, and there may be one for each sub-handler.
func TestLargeResultsTakeMemoryOrAreDropped(t *testing.T) {
	var reserved int
	enough := func(bytes int) error { reserved += bytes; return nil }
	none := func(bytes int) error { reserved += bytes; return errors.New("none") }
	for name, c := range map[string]struct {
		result   any
		sub      bool
		reserve  func(int) error
		reserved int
		kept     bool
	}{
		"a small one":              {strings.Repeat("x", smallResult), false, none, 0, true},
		"a large one":              {strings.Repeat("x", smallResult+1), false, enough, smallResult + 1, true},
		"without memory":           {strings.Repeat("x", smallResult+1), false, none, smallResult + 1, false},
		"a small sub-result":       {strings.Repeat("x", smallSubResult), true, none, 0, true},
		"a large sub-result":       {strings.Repeat("x", smallSubResult+1), true, enough, smallSubResult + 1, true},
		"without memory for a sub": {strings.Repeat("x", smallSubResult+1), true, none, smallSubResult + 1, false},
		"without limits":           {strings.Repeat("x", smallResult+1), false, nil, 0, true},
		"one that nobody takes":    {[]string{strings.Repeat("x", largestResult), "y"}, false, nil, 0, false},
	} {
		reserved = 0
		result, err := resultOf(&handler.Request{Result: c.result, Reserve: c.reserve, Log: slog.New(slog.DiscardHandler)}, "fn", c.sub)
		if err != nil || (result != nil) != c.kept || reserved != c.reserved {
			t.Errorf("%s: kept %v, %d bytes reserved, %v", name, result != nil, reserved, err)
		}
	}
}
