package storage

import (
	"strings"
	"testing"

	"gopf.dev/gopf/internal/jsonvalue"
)

func TestDecompressionIsLimited(t *testing.T) {
	for size, fits := range map[int]bool{jsonvalue.MaxStored: true, jsonvalue.MaxStored + 1: false} {
		packed, err := compress(strings.Repeat("x", size))
		if err != nil {
			t.Fatal(err)
		}
		if text, err := decompress(packed); (err == nil) != fits || fits && len(text) != size {
			t.Errorf("%d bytes become %d: %v", size, len(text), err)
		}
	}
	for _, text := range []string{"", "!", "AAAA"} {
		if got, err := decompress(text); err == nil {
			t.Errorf("%q is decompressed to %q", text, got)
		}
	}
}

func TestProgressIsInTheStatusIfItsFieldIs(t *testing.T) {
	for name, c := range map[string]struct {
		field []string
		want  bool
	}{
		"by default": {NewStatusProgress("x").Field, true}, "elsewhere": {[]string{"spec", "status"}, false}, "nowhere": {nil, false},
	} {
		if got := (&StatusProgress{Field: c.field}).InStatus(); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestAdviceNamesTheLineOfTheConstructor(t *testing.T) {
	advice := NewAnnotationProgress("kopf.example.com").Advice()
	if len(advice) != 1 || !strings.HasPrefix(advice[0], "storage/limits_test.go:") {
		t.Errorf("got %q", advice)
	}
	if advice := NewAnnotationProgress("example.com").Advice(); len(advice) != 0 {
		t.Errorf("got %q", advice)
	}
}

func TestBasesAreCompressedFrom224KiBOn(t *testing.T) {
	if got := NewAnnotationBase("example.com").CompressAbove; got != 224<<10 {
		t.Errorf("got %d", got)
	}
}

func TestTheKeyOfTheBindingIsUnderThePrefix(t *testing.T) {
	if got := NewAnnotationBase("example.com").Bound(); got != "example.com/gopf.bound" {
		t.Errorf("got %q", got)
	}
}

func TestAPrefixThatLeavesRoomForTheSuffixOnly(t *testing.T) {
	name := strings.Repeat("a", 80)
	suffix := Suffix(name)
	prefix := strings.Repeat("p", nameLimit-1-len(suffix))
	if got := nameV1(prefix, name); got != suffix {
		t.Errorf("got %q, want %q", got, suffix)
	}
}

func TestTextsOfQuotesAndBackslashesAreEscaped(t *testing.T) {
	for text, want := range map[string]string{`"`: `{"spec":"\""}`, `\`: `{"spec":"\\"}`, "~": `{"spec":"~"}`, " ": `{"spec":" "}`, "\x7f": `{"spec":"\u007f"}`, "\x1f": `{"spec":"\u001f"}`,
		"\uffff": `{"spec":"\uffff"}`, "\U00010000": `{"spec":"\ud800\udc00"}`, "\U0010ffff": `{"spec":"\udbff\udfff"}`} {
		got, err := EncodeEssence(map[string]any{"spec": text})
		if back, _, backErr := DecodeEssence(got); err != nil || backErr != nil || back["spec"] != text {
			t.Errorf("%q becomes %s and %v", text, got, back)
		}
		if strings.TrimSpace(got) != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

// plainBase is a base of a user's own, which cleans essences without their objects.
type plainBase struct{ Base }

func (plainBase) Clean(essence map[string]any) { delete(essence, "own") }

// nothing is an object without fields.
type nothing struct{}

func (nothing) Identity() Identity           { return Identity{} }
func (nothing) Lookup(...string) (any, bool) { return nil, false }

func TestSeveralBasesCleanEssencesEachInItsWay(t *testing.T) {
	m := MultiBase(NewAnnotationBase("example.com"), plainBase{})
	for name, clean := range map[string]func(map[string]any){
		"alone":         m.Clean,
		"of its object": func(e map[string]any) { m.(ObjectCleaner).CleanObject(nothing{}, e) },
	} {
		e := map[string]any{"own": 1, "spec": 2, "metadata": map[string]any{"annotations": map[string]any{"example.com/last-handled-configuration": "{}"}}}
		clean(e)
		if len(e) != 1 || e["spec"] != 2 {
			t.Errorf("%s: left is %v", name, e)
		}
	}
}
