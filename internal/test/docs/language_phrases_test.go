package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// phrases lists expressions that break a rule of CONTRIBUTING.md, "Language". A
// single match can be good English, but text with many matches is hard to read.
//
// A phrase is a sequence of words or punctuation marks, each with alternatives.
// "^" is the beginning of a paragraph, "*" is any word, and "…" stands for one to
// five words. Case and line breaks do not matter.
var phrases = []struct{ rule, phrase string }{
	{"name the actor", "somebody|nobody|anybody|everybody|whoever|whomever|one's"},
	{"name the actor", "those who"},
	{"name the actor", "is|are|was|were|been|being told|asked|let"},
	{"name the thing", "is|are|was|were what|who|whom"},
	{"name the thing", "what is|was|are|were|has|had|have|came|comes|goes|became|there|they|it"},
	{"name the thing", "became|become|becomes|came|come|comes of"},
	{"use the established term", "news|anew|afresh|lately|farewell|needless|heed|heeds|mend|mends|mended|amiss|beside|deed|deeds"},
	{"use the established term", "in vain"},
	{"open as Go readers expect", "^ * tells"},
	{"open as Go readers expect", "^ * is|are how|where|when|why|whether|after|under|until|from|as|of|that|those|all"},
	{"reports whether, says why", "tell|tells|told|telling whether|that|why|how|what|which|where|when|who|of|apart|so"},
	{"must, may, should or can", "shall"},
	{"must, may, should or can", "is|are|was|were to be|have|do|stop|go"},
	{"must, may, should or can", "is|are|was|were not to be|have|do|stop|go"},
	{"must, may, should or can", "need|needs not"},
	{"must, may, should or can", "has|have to"},
	{"use a plain verb", "make|makes … be|have|get|come"},
	{"use a plain verb", "go|goes|going|gone|went on"},
	{"use a plain verb", "begun"},
	{"use a plain verb", "begin|begins|began|cease|ceases to"},
	{"use a plain verb", "bear|bears to|it|them"},
	{"nil means, empty means", `nil|"" if|for`},
	{"one thought per sentence", ", so that"},
	{"one thought per sentence", ", too"},
	{"one thought per sentence", "neither ."},
	{"misplaced word", "also if|while|when|where|in|before|after|by|for|those"},
	{"misplaced word", "anymore"},
	{"misplaced word", "any more"},
	{"empty idiom", "for good"},
	{"empty idiom", "and|or the like"},
	{"empty idiom", "as it were"},
	{"empty idiom", "at the most"},
	{"empty idiom", "that much"},
	{"empty idiom", "of its|their|your|our|his own"},
	{"empty idiom", "say|says|said so"},
	{"American spelling", "behaviour|behaviours|colour|colours|cancelled|cancelling|licence|favour|favours|neighbour|neighbours|misspelt"},
	{"American spelling", "recognise|recognises|recognised|initialise|initialises|initialised|serialise|serialises|serialised"},
}

// matcher finds one phrase.
type matcher struct {
	rule  string
	parts [][]string // the alternatives of each word
}

// matchers returns the phrases by the words with which they begin.
func matchers() map[string][]matcher {
	all := map[string][]matcher{}
	for _, p := range phrases {
		m := matcher{rule: p.rule}
		for part := range strings.FieldsSeq(p.phrase) {
			m.parts = append(m.parts, strings.Split(part, "|"))
		}
		for _, first := range m.parts[0] {
			all[first] = append(all[first], m)
		}
	}
	return all
}

// match returns the number of words that the phrase takes at the beginning of
// words, or 0.
func (m matcher) match(words []word) int {
	taken := 0
	for i, part := range m.parts {
		switch {
		case part[0] == "…":
			rest := matcher{parts: m.parts[i+1:]}
			for n := 1; n <= 5 && taken+n < len(words) && words[taken+n-1].letters(); n++ {
				if more := rest.match(words[taken+n:]); more > 0 {
					return taken + n + more
				}
			}
			return 0
		case taken == len(words):
			return 0
		case part[0] == "*" && words[taken].letters(), slices.Contains(part, words[taken].lower):
			taken++
		default:
			return 0
		}
	}
	return taken
}

// word is a word or a punctuation mark of a paragraph.
type word struct {
	lower string
	at    int // its offset
	end   int
}

func (w word) letters() bool {
	return w.lower[0] >= 'a' && w.lower[0] <= 'z' || w.lower[0] >= '0' && w.lower[0] <= '9'
}

var aWord = regexp.MustCompile(`[A-Za-z0-9_]+(?:['’-][A-Za-z0-9_]+)*|""|[^\sA-Za-z0-9_]`)

// wordsOf splits a text, after a mark for its beginning.
func wordsOf(text string) []word {
	words := []word{{lower: "^"}}
	for _, at := range aWord.FindAllStringIndex(text, -1) {
		words = append(words, word{strings.ToLower(text[at[0]:at[1]]), at[0], at[1]})
	}
	return words
}

func TestPhrasesAreFound(t *testing.T) {
	all := matchers()
	for text, want := range map[string]string{
		"Somebody else has changed it":                    "Somebody",
		"it is handled\nanew":                             "anew",
		"the watch brings news":                           "news",
		"records what\nbecame of handlers":                "what became",
		"ready tells true":                                "ready tells",
		"the error tells why":                             "tells why",
		"Limit is how many may wait":                      "Limit is how",
		"a base is what was handled":                      "is what",
		"the field is not to be removed":                  "is not to be",
		"an update makes all of them be called":           "makes all of them be",
		"the stream goes on":                              "goes on",
		"returns nil if there is none":                    "nil if",
		`returns "" for none`:                             `"" for`,
		"it is called, so that others wait":               ", so that",
		"the others wait, too":                            ", too",
		"not that one neither.":                           "neither.",
		"also if it fails":                                "also if",
		"it is not served any more":                       "any more",
		"the handler has failed for good":                 "for good",
		"a goroutine of its own":                          "of its own",
		"operators are told about deletions":              "are told",
		"the behaviour of Kopf":                           "behaviour",
		"the event, the response and the list item":       "",
		"X reports whether the object is being deleted":   "",
		"Active limits the turns. 0 means no limit.":      "",
		"nil means no limit. The API server retries.":     "",
		"it makes a copy. Others can be called":           "",
		"newsletter, besides, mending is not in the list": "",
	} {
		hits := search(newParagraph("x.go", inComment, 1, text), all)
		switch {
		case want == "" && len(hits) > 0:
			t.Errorf("%q: found %q", text, hits[0].text)
		case want != "" && !slices.ContainsFunc(hits, func(h hit) bool { return h.text == want }):
			t.Errorf("%q: found %v instead of %q", text, hits, want)
		}
	}
}
