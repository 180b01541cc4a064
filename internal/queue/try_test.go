package queue

import "testing"

// Otherwise an object with many large children would never get all of them.
func TestTheOnlyCallGetsTwiceTheSize(t *testing.T) {
	b := &Budget{Size: 10, Most: 8}
	first, ok := b.Try(4, 0, "a")
	if !ok {
		t.Fatal("there is no room in an empty budget")
	}
	second, ok := b.Try(10, 4, "a")
	if !ok {
		t.Fatal("the only call does not get more than the size")
	}
	if _, ok := b.Try(7, 14, "a"); ok {
		t.Error("the only call gets more than twice the size")
	}
	if _, ok := b.Try(1, 0, "a"); ok {
		t.Error("another call gets room")
	}
	other, ok := b.Try(1, 0, "b")
	if !ok {
		t.Fatal("another group, which has nothing, gets no room")
	}
	if _, ok := b.Try(1, 14, "a"); ok {
		t.Error("a call that is not the only one gets more than the size")
	}
	first()
	second()
	other()
	if b.used != 0 || len(b.shares) > 0 {
		t.Errorf("%d are used: %v", b.used, b.shares)
	}
}
