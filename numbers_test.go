package gopf

import (
	"bytes"
	"os"
	"regexp"
	"strconv"
	"testing"
)

// Other numbers of the pages are checked in internal/test/docs.
func TestSecretKeysNeedAsManyBytesAsThePageSays(t *testing.T) {
	text, err := os.ReadFile("docs/trust.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`of (\d+) bytes or more`).FindSubmatch(text)
	if m == nil {
		t.Fatal("the page does not state the minimum length of a key")
	}
	least, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	for n, accepted := range map[int]bool{least - 1: false, least: true} {
		s := DefaultSettings()
		s.Persistence.SecretKey = bytes.Repeat([]byte("k"), n)
		if err := s.check(); (err == nil) != accepted {
			t.Errorf("a key of %d bytes: %v", n, err)
		}
	}
}
