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
