package kube

import (
	"strconv"
	"testing"
)

// A client can create any number of objects that the operator cannot read.
func TestUnreadableObjectsOfOneNamespaceDoNotHideThoseOfOthers(t *testing.T) {
	var s skipped
	named, lasts := 0, 0
	for i := range 10 * maxSkipped {
		first, last := s.first(skippedKey{"things", strconv.Itoa(i)}, "hostile")
		if first {
			named++
		}
		if last {
			lasts++
		}
	}
	if named != maxSkippedWithin || lasts != 1 {
		t.Errorf("%d objects are named, and %d lines say that there are more", named, lasts)
	}
	if first, _ := s.first(skippedKey{"things", "x"}, "other"); !first {
		t.Error("the object of another namespace is not named")
	}
	if first, _ := s.first(skippedKey{"things", "x"}, "other"); first {
		t.Error("it is named twice")
	}
	for i := range 10 * maxSkipped {
		s.first(skippedKey{"things", "n" + strconv.Itoa(i)}, strconv.Itoa(i))
	}
	if len(s.named) != maxSkipped || len(s.within) > maxSkipped {
		t.Errorf("%d objects of %d namespaces are remembered", len(s.named), len(s.within))
	}
}
