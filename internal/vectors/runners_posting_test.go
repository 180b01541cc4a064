package vectors_test

import (
	"strings"
	"testing"

	"gopf.dev/gopf/internal/recorder"
)

func eventMessage(t *testing.T, v vector) {
	c := decode[struct {
		Len       int
		ResultLen int  `json:"result_len"`
		PrefixLen *int `json:"prefix_len"`
		SuffixLen *int `json:"suffix_len"`
	}](t, v.JSON)
	got := recorder.Cut(strings.Repeat("ж", c.Len))
	if n := len([]rune(got)); n != c.ResultLen {
		t.Errorf("%d characters become %d, want %d", c.Len, n, c.ResultLen)
	}
	if c.PrefixLen == nil {
		return
	}
	head, tail, _ := strings.Cut(got, "...")
	if len([]rune(head)) != *c.PrefixLen || len([]rune(tail)) != *c.SuffixLen {
		t.Errorf("%d and %d characters are left, want %d and %d", len([]rune(head)), len([]rune(tail)), *c.PrefixLen, *c.SuffixLen)
	}
}
