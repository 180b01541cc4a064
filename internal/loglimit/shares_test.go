package loglimit

import (
	"fmt"
	"testing"
)

func TestNamespacesShareTheEntriesFairly(t *testing.T) {
	s := Shares[string, int]{Limit: 12}
	in := func(namespace string) (n int) {
		for i := range 100 {
			if _, ok := s.Get(namespace, fmt.Sprint(i)); ok {
				n++
			}
		}
		return n
	}
	displaced := map[string]int{}
	put := func(namespace string, n int) (ok int) {
		for i := range n {
			if s.Put(namespace, fmt.Sprint(i), i, func(k string, v int) { displaced[k] = v }) {
				ok++
			}
		}
		return ok
	}
	for _, step := range []struct {
		namespace string
		n, ok     int
		want      [3]int // the entries of a, b and c
	}{
		{"a", 100, 12, [3]int{12, 0, 0}}, // nobody else needs them
		{"b", 2, 2, [3]int{10, 2, 0}},
		{"a", 100, 10, [3]int{10, 2, 0}}, // those that it has
		{"b", 100, 6, [3]int{6, 6, 0}},
		{"c", 1, 1, [3]int{0, 0, 1}},
		{"c", 1, 1, [3]int{0, 0, 1}},
		{"c", 100, 4, [3]int{4, 4, 4}},
		{"a", 100, 4, [3]int{4, 4, 4}},
	} {
		if ok := put(step.namespace, step.n); ok != step.ok {
			t.Errorf("%d entries of %s: %d were added, want %d", step.n, step.namespace, ok, step.ok)
		}
		got := [3]int{in("a"), in("b"), in("c")}
		if step.want[0] == 0 && step.want[1] == 0 { // either of the two gives up an entry
			got[0], got[1] = 0, 0
		}
		if got != step.want || s.Len() != 12 {
			t.Errorf("after %d entries of %s: got %v, want %v; %d in total", step.n, step.namespace, got, step.want, s.Len())
		}
	}
	if len(displaced) == 0 {
		t.Error("displaced was not called")
	}
	s.DeleteFunc(func(k string, v int) bool { return k == fmt.Sprint(v) })
	if s.Len() != 0 || len(s.of) != 0 || in("a") > 0 {
		t.Errorf("%d entries of %d namespaces are left", s.Len(), len(s.of))
	}
}
