package loglimit

import (
	"slices"
	"testing"
)

func TestEachKindIsLoggedOnceUntilReset(t *testing.T) {
	var o Once[string]
	if !o.First("a") || !o.First("b") || o.First("a") {
		t.Error("before the reset")
	}
	o.Reset()
	if !o.First("a") || o.First("a") {
		t.Error("after the reset")
	}
}

func TestUpdateReturnsNewKindsAndForgetsOthers(t *testing.T) {
	var o Once[string]
	for i, c := range []struct{ current, added []string }{
		{[]string{"a", "b"}, []string{"a", "b"}},
		{[]string{"b", "c", "c"}, []string{"c"}},
		{nil, nil},
		{[]string{"b"}, []string{"b"}},
	} {
		added := o.Update(c.current)
		if !slices.Equal(added, c.added) {
			t.Errorf("#%d: got %v, want %v", i, added, c.added)
		}
		kinds, want := slices.Sorted(slices.Values(o.Kinds())), slices.Compact(slices.Clone(c.current))
		if !slices.Equal(kinds, want) || o.Len() != len(want) {
			t.Errorf("#%d: remembers %v, want %v", i, kinds, want)
		}
	}
}
