package vectors_test

import (
	"slices"
	"strings"
	"testing"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/storage"
	"gopf.dev/gopf/storage/storagetest"
)

func annotationKeys(t *testing.T, v vector) {
	c := decode[struct {
		Prefix, Key string
		V1          bool
		Body        storagetest.Body
		Keys        []string
		V1Key       string `json:"v1_key"`
		V2Key       string `json:"v2_key"`
	}](t, v.JSON)
	marked := storage.Marked(c.Body)
	if got := storage.Keys(c.Prefix, c.Key, marked, c.V1); !slices.Equal(c.Keys, got) {
		t.Errorf("got  %q\nwant %q", got, c.Keys)
	}
	both := slices.Compact([]string{c.V2Key, c.V1Key})
	if got := storage.Keys(c.Prefix, c.Key, marked, true); !slices.Equal(both, got) {
		t.Errorf("got  %q\nwant %q", got, both)
	}
}

func hashSuffix(t *testing.T, v vector) {
	c := decode[struct{ Key, Suffix string }](t, v.JSON)
	if got := storage.Suffix(c.Key); got != c.Suffix {
		t.Errorf("got %q, want %q", got, c.Suffix)
	}
}

func jsonEncoding(t *testing.T, v vector) {
	c := decode[struct {
		Value   any
		Encoded string
	}](t, v.JSON)
	value, encoded := map[string]any{"v": c.Value}, `{"v":`+c.Encoded+`}`
	got, err := storage.EncodeEssence(value)
	if err != nil {
		t.Fatal(err)
	}
	if !sameText(encoded, got) {
		t.Errorf("got  %s\nwant %s", got, encoded)
	}
	read, found, err := storage.DecodeEssence(encoded)
	if err != nil || !found || !diff.Equal(value, read) {
		t.Errorf("read again: got %v, %v, %v, want %v", read, found, err, value)
	}
}

func timestamp(t *testing.T, v vector) {
	c := decode[struct {
		Input, Parsed, UTC, Error string
		Naive                     bool
	}](t, v.JSON)
	parsed, err := storage.ParseTime(c.Input)
	if (err != nil) != (c.Error != "") {
		t.Fatalf("error: got %v, want %q", err, c.Error)
	}
	if err != nil {
		return
	}
	want := c.UTC
	if c.Naive {
		// Kopf breaks on a time without an offset. We take it as UTC, in which
		// its older versions have written it.
		want = c.Parsed + "+00:00"
	}
	if got := storage.FormatTime(parsed); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// sameText compares JSON texts byte by byte, but for the order of keys: Kopf has
// that of the object at hand, we sort.
func sameText(want, got string) bool {
	if got == want {
		return true
	}
	wanted, _, err1 := storage.DecodeEssence(want)
	given, _, err2 := storage.DecodeEssence(got)
	return err1 == nil && err2 == nil && diff.Equal(wanted, given) &&
		len(want) == len(got) && strings.HasSuffix(want, "\n") == strings.HasSuffix(got, "\n")
}
