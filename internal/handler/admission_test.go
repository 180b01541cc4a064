package handler

import (
	"strings"
	"testing"
)

// Handlers may quote objects of tenants, and reviews have up to 4 MiB.
func TestWarningsOfAReviewAreLimited(t *testing.T) {
	r := &Review{}
	r.Warn("short")
	r.Warn("")
	r.Warn(strings.Repeat("x\n", 1<<20))
	if len(r.Warnings) != 2 || r.Warnings[0] != "short" || len(r.Warnings[1]) != longestWarning || !strings.HasSuffix(r.Warnings[1], "…") {
		t.Errorf("%d warnings: %.20q", len(r.Warnings), r.Warnings)
	}
	for range 10_000 {
		r.Warn(strings.Repeat("y", 1000))
	}
	all := len(strings.Join(r.Warnings, ""))
	if all > allWarnings || all < allWarnings-1000 {
		t.Errorf("%d warnings of %d bytes", len(r.Warnings), all)
	}
}
