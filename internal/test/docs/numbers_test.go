package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// quantity matches a number with a unit, a time in words, and a number with a thousands
// separator.
var quantity = regexp.MustCompile(`\b[0-9][0-9,.]*\s(s|ms|seconds?|minutes?|hours?|days?|[KMG]iB(/s)?|bytes|characters|levels|values|objects)\b` +
	`|\b(half an?|one|two|three|four|five|six|seven|eight|nine|ten)\s(seconds?|minutes?|hours?|(working )?days?)\b` +
	`|\b[0-9]{1,3}(,[0-9]{3})+\b`)

// TestNumbersInThePagesAreThoseOfTheCode checks that pages contain their claims, and that
// each quantity in a page is part of a claim or listed as not being of this code. Another
// test checks the table of settings.
func TestNumbersInThePagesAreThoseOfTheCode(t *testing.T) {
	wanted := claims(t)
	read := pagesWithNumbers(t)
	for path, prose := range read {
		for _, problem := range wrongNumbers(path, prose, append(phrasesOf(elsewhere[path]), wanted[path]...)) {
			t.Error(problem)
		}
	}
	for path := range wanted {
		if read[path] == "" {
			t.Errorf("there is no page %s", path)
		}
	}
	for path := range elsewhere {
		if read[path] == "" {
			t.Errorf("there is no page %s", path)
		}
	}
}

// wrongNumbers returns the phrases that a page does not contain, and the quantities that
// no phrase is about.
func wrongNumbers(path, prose string, phrases []string) (problems []string) {
	covered := make([]bool, len(prose))
	for _, phrase := range phrases {
		found := matcherOf(phrase).FindAllStringIndex(prose, -1)
		if len(found) == 0 {
			problems = append(problems, fmt.Sprintf("%s does not contain %q", path, phrase))
		}
		for _, m := range found {
			for i := m[0]; i < m[1]; i++ {
				covered[i] = true
			}
		}
	}
	for _, m := range quantity.FindAllStringIndex(prose, -1) {
		if !covered[m[0]] && !inSettings(path, prose, m[0]) {
			line := 1 + strings.Count(prose[:m[0]], "\n")
			problems = append(problems, fmt.Sprintf("%s:%d: no claim is about %q", path, line, prose[m[0]:m[1]]))
		}
	}
	return problems
}

// inSettings reports whether a position is in the table of settings.
func inSettings(path, prose string, at int) bool {
	return path == "docs/configuration.md" && strings.HasPrefix(lineAt(prose, at), "| `")
}

func TestAnyOtherNumberInAPageIsNoticed(t *testing.T) {
	wanted := claims(t)
	for path, prose := range pagesWithNumbers(t) {
		phrases := append(phrasesOf(elsewhere[path]), wanted[path]...)
		for _, m := range quantity.FindAllStringIndex(prose, -1) {
			if inSettings(path, prose, m[0]) {
				continue
			}
			if changed := prose[:m[0]] + "7" + prose[m[0]:]; len(wrongNumbers(path, changed, phrases)) == 0 {
				t.Errorf("%s: 7%s instead of %[2]s is not noticed", path, prose[m[0]:m[1]])
			}
		}
	}
}

// pagesWithNumbers returns the prose of the pages whose numbers are checked, by path.
func pagesWithNumbers(t *testing.T) map[string]string {
	t.Helper()
	read := map[string]string{}
	for _, p := range pages(t) {
		if strings.HasPrefix(p.path, "docs/") {
			read[p.path] = p.prose
		}
	}
	raw, err := os.ReadFile(filepath.Join(root, "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	read["SECURITY.md"] = string(raw)
	return read
}

// matcherOf matches a phrase with any line breaks between its words. A phrase that begins
// or ends with a number does not match a part of a longer number.
func matcherOf(phrase string) *regexp.Regexp {
	words := strings.Fields(phrase)
	for i, w := range words {
		words[i] = regexp.QuoteMeta(w)
	}
	text := strings.Join(words, `\s+`)
	if isWord(phrase[0]) {
		text = `\b` + text
	}
	if isWord(phrase[len(phrase)-1]) {
		text += `\b`
	}
	return regexp.MustCompile(text)
}

func isWord(b byte) bool {
	return b == '_' || '0' <= b && b <= '9' || 'a' <= b|0x20 && b|0x20 <= 'z'
}

func lineAt(text string, at int) string {
	from := strings.LastIndex(text[:at], "\n") + 1
	line, _, _ := strings.Cut(text[from:], "\n")
	return line
}

func TestAClaimMatchesItsNumberOnly(t *testing.T) {
	for name, c := range map[string]struct {
		phrase, text string
		want         bool
	}{
		"the phrase":              {"at most 5 s", "It waits at most 5 s.", true},
		"across a line break":     {"at most 5 s", "It waits at\n  most 5 s.", true},
		"another number":          {"at most 5 s", "It waits at most 6 s.", false},
		"a longer number":         {"at most 5 s", "It waits at most 25 s.", false},
		"the end of a number":     {"5 s at most", "It waits 25 s at most.", false},
		"the beginning of a unit": {"at most 5 s", "It takes at most 5 streams.", false},
		"punctuation":             {"| 5 s |", "| timeout | 5 s |", true},
	} {
		if got := matcherOf(c.phrase).MatchString(c.text); got != c.want {
			t.Errorf("%s: %q in %q: got %v, want %v", name, c.phrase, c.text, got, c.want)
		}
	}
}
