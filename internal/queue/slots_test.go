package queue

import (
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
)

// crowd are callers that hold and await slots.
type crowd struct {
	slots *Slots
	began []string      // the groups, in the order of their slots
	next  chan struct{} // one caller gives its slot back
}

// enter starts n callers of a group, one after the other.
func (c *crowd) enter(group string, n int) {
	for range n {
		go func() {
			release, _ := c.slots.Acquire(group, nil, nil)
			c.began = append(c.began, group)
			<-c.next
			release()
		}()
		synctest.Wait()
	}
}

// enterIn starts n callers of a part of a group, one after the other.
func (c *crowd) enterIn(group, part string, n int) {
	for range n {
		go func() {
			release, _ := c.slots.AcquireIn(group, part, nil, nil)
			c.began = append(c.began, group+" "+part)
			<-c.next
			release()
		}()
		synctest.Wait()
	}
}

func (c *crowd) check(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if !slices.Equal(c.began, want) {
		t.Errorf("got the slots %v, want %v", c.began, want)
	}
	c.began = nil
}

// end lets n callers give their slots back, one after the other.
func (c *crowd) end(n int) {
	for range n {
		c.next <- struct{}{}
		synctest.Wait()
	}
}

func TestGroupsTakeTurnsForOneSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{slots: NewSlots(1), next: make(chan struct{})}
		c.enter("many", 5)
		c.enter("few", 2)
		c.check(t, "many")
		c.end(7)
		c.check(t, "many", "few", "many", "few", "many", "many")
	})
}

func TestAGroupCannotHaveAllSlots(t *testing.T) {
	for size, most := range map[int]int{0: 1, 1: 1, 2: 1, 3: 2, 4: 3, 8: 6} {
		synctest.Test(t, func(t *testing.T) {
			c := &crowd{slots: NewSlots(size), next: make(chan struct{})}
			c.enter("many", 20)
			c.check(t, slices.Repeat([]string{"many"}, most)...)
			c.enter("few", 1)
			if size > 1 {
				c.check(t, "few")
			}
			c.end(21)
			if c.slots.used != 0 || len(c.slots.shares) > 0 || c.slots.waiting.of != nil {
				t.Errorf("%d slots: some are not given back: %+v", size, c.slots)
			}
		})
	}
}

func TestACallerThatGivesUpTakesNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSlots(1)
		release, _ := s.Acquire("a", nil, nil)
		done := make(chan struct{})
		for _, group := range []string{"a", "b"} {
			go func() {
				if _, ok := s.Acquire(group, done, nil); ok {
					t.Error("it got a slot")
				}
			}()
		}
		got := false
		go func() {
			again, ok := s.Acquire("b", nil, done)
			if got = ok; ok {
				again()
			}
		}()
		go func() {
			again, ok := s.Acquire("c", nil, nil)
			if got = ok; ok {
				again()
			}
		}()
		synctest.Wait()
		close(done)
		synctest.Wait()
		if got {
			t.Error("a slot was given twice")
		}
		release()
		synctest.Wait()
		if !got || s.used != 0 || s.waiting.of != nil || len(s.waiting.groups.items) > 0 {
			t.Errorf("the slot is lost: %+v", s)
		}
		if release, ok := s.Acquire("a", done, done); !ok {
			t.Error("a free slot is not given")
		} else {
			release()
		}
	})
}

// A network peer may invent parts, such as the namespaces of reviews.
func TestInventedPartsOnlyDivideTheShareOfTheirGroup(t *testing.T) {
	for size, most := range map[int]int{2: 1, 3: 2, 4: 3, 8: 6} {
		synctest.Test(t, func(t *testing.T) {
			c := &crowd{slots: NewSlots(size), next: make(chan struct{})}
			for i := range 20 {
				c.enterIn("peer", strconv.Itoa(i), 1)
			}
			if len(c.began) != most {
				t.Errorf("%d slots: the peer has %d, want %d", size, len(c.began), most)
			}
			c.began = nil
			c.enterIn("server", "a", 1)
			c.check(t, "server a")
			c.end(21)
			if c.slots.used != 0 || len(c.slots.shares) > 0 || c.slots.waiting.of != nil || len(c.slots.divided) > 0 {
				t.Errorf("%d slots: some are not given back: %+v", size, c.slots)
			}
		})
	}
}

func TestGroupsWithPartsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{slots: NewSlots(1), next: make(chan struct{})}
		for _, part := range []string{"1", "2", "3", "4"} {
			c.enterIn("peer", part, 1)
		}
		c.enterIn("server", "many", 3)
		c.enterIn("server", "few", 1)
		c.check(t, "peer 1")
		c.end(8)
		c.check(t, "server many", "peer 2", "server many", "peer 3", "server few", "peer 4", "server many")
	})
}

func TestAPartCannotHaveAllSlotsOfItsGroup(t *testing.T) {
	for size, most := range map[int]int{3: 1, 4: 2, 8: 5} {
		synctest.Test(t, func(t *testing.T) {
			c := &crowd{slots: NewSlots(size), next: make(chan struct{})}
			c.enterIn("server", "many", 20)
			c.check(t, slices.Repeat([]string{"server many"}, most)...)
			c.enterIn("server", "few", 1)
			c.check(t, "server few")
			c.end(21)
		})
	}
}

func TestACallerOfAPartThatGivesUpTakesNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSlots(2)
		a, _ := s.AcquireIn("a", "x", nil, nil)
		b, _ := s.AcquireIn("b", "x", nil, nil)
		done := make(chan struct{})
		for _, group := range []string{"a", "c"} { // waits in its group, and among the groups
			go func() {
				if _, ok := s.AcquireIn(group, "y", done, nil); ok {
					t.Error("it got a slot")
				}
			}()
		}
		synctest.Wait()
		close(done)
		synctest.Wait()
		a()
		b()
		if s.used != 0 || s.waiting.of != nil || len(s.divided) > 0 {
			t.Errorf("a slot is lost: %+v", s)
		}
	})
}
