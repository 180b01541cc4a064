package picture

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const folder = "../../docs/pictures"

// TestDrawingsAreThoseOfTheirSources fails if a text file was changed without "make pictures".
func TestDrawingsAreThoseOfTheirSources(t *testing.T) {
	sources, err := filepath.Glob(folder + "/*.txt")
	if err != nil || len(sources) < 8 {
		t.Fatalf("only these sources are found: %v, %v", sources, err)
	}
	for _, source := range sources {
		p, err := Read(source)
		if err != nil {
			t.Error(err)
			continue
		}
		drawn, err := os.ReadFile(strings.TrimSuffix(source, ".txt") + ".svg")
		if err != nil {
			t.Error(err)
		} else if string(drawn) != p.SVG("") {
			t.Errorf("the drawing of %s is out of date; run make pictures", source)
		}
	}
}

// TestEveryDrawingIsInAPage checks that pages show all drawings, each with a text for readers
// who cannot see it.
func TestEveryDrawingIsInAPage(t *testing.T) {
	shown := map[string]bool{}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, "../../README.md")
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`!\[([^\]]*)\]\((?:docs/)?pictures/([^)]+)\)`).FindAllStringSubmatch(string(text), -1) {
			shown[m[2]] = true
			if len(m[1]) < 20 {
				t.Errorf("%s: %s needs a longer description than %q", page, m[2], m[1])
			}
		}
	}
	drawings, err := filepath.Glob(folder + "/*.svg")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range drawings {
		if !shown[filepath.Base(d)] {
			t.Errorf("no page shows %s", d)
		}
	}
}

func TestMistakesInDrawingsAreReported(t *testing.T) {
	const head = "size 200 100\ntitle T\n"
	for name, c := range map[string]struct{ text, want string }{
		"no size":            {"title T", "size"},
		"unknown statement":  {head + "circle 1 2 3", `unknown statement "circle"`},
		"unknown kind":       {head + "box a pink 0 0 10 10", "kinds"},
		"text too long":      {head + "box a plain 0 0 40 30 | a long label", "needs a width"},
		"too many lines":     {head + "box a plain 0 0 100 30 | a | b", "needs a height"},
		"outside":            {head + "box a plain 150 0 100 30 | a", "leaves the drawing"},
		"overlap":            {head + "box a plain 0 0 50 50 | a\nbox b plain 40 40 50 50 | b", "overlap"},
		"arrow to nowhere":   {head + "box a plain 0 0 50 50 | a\narrow a.r b.l", `no box "b"`},
		"no number":          {head + "line 1 2 3 x", `"x" is no number`},
		"a bar is too small": {head + "bar good 0 0 20 20 | a long label", "needs a width"},
	} {
		if _, err := Parse(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, c.want)
		}
	}
}

// TestTextIsReadableInBothThemes computes contrast ratios as WCAG 2 defines them.
func TestTextIsReadableInBothThemes(t *testing.T) {
	for name, c := range map[string]colors{"light": light, "dark": dark} {
		for _, kind := range slices.Sorted(maps.Keys(c.fill)) {
			if r := contrast(c.ink, c.fill[kind]); r < 7 {
				t.Errorf("%s: the contrast of text in %s is %.1f; at least 7 is required", name, kind, r)
			}
		}
		if r := contrast(c.faint, c.paper); r < 4.5 {
			t.Errorf("%s: the contrast of small text is %.1f; at least 4.5 is required", name, r)
		}
	}
}

func contrast(a, b string) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(color string) float64 {
	var r, g, b int
	if _, err := fmt.Sscanf(color, "#%02x%02x%02x", &r, &g, &b); err != nil {
		panic(err)
	}
	linear := func(n int) float64 {
		v := float64(n) / 255
		if v <= 0.03928 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(r) + 0.7152*linear(g) + 0.0722*linear(b)
}
