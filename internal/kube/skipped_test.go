package kube

import (
	"fmt"
	"testing"
)

// A tenant creates and deletes objects that cannot be read.
func TestUnreadableObjectsOfOneNamespaceDoNotHideThoseOfOthers(t *testing.T) {
	var s skipped
	logged, ends := 0, 0
	for i := range 3 * maxSkipped {
		first, last := s.first("tenant", skippedKey{"things", fmt.Sprint(i)})
		if first {
			logged++
		}
		if last {
			ends++
		}
	}
	if logged != maxSkipped || ends != 1 {
		t.Errorf("%d objects of the tenant are logged, and %d times that there are too many; want %d and once", logged, ends, maxSkipped)
	}
	for _, want := range []bool{true, false} {
		if first, last := s.first("other", skippedKey{"things", "x"}); first != want || last {
			t.Errorf("an object of another namespace is logged: %v, want %v; as the last: %v", first, want, last)
		}
	}
	for i := range 3 * maxSkipped { // as a list
		if first, _ := s.first("tenant", skippedKey{"things", fmt.Sprint(i)}); first {
			t.Fatal("an object of the tenant is logged again")
		}
	}
}
