package attacks_test

import (
	"os"
	"slices"
	"sync"
	"testing"
	"time"
)

// An attack returns the names of the objects to blame, which the log must name.
type attack struct {
	name string
	do   func(*scene) (blame []string)
}

var list = []attack{
	{"a bomb of 27 KB", func(s *scene) []string { return s.bombs(27_000) }},
	{"a bomb of 245 KB", func(s *scene) []string { return s.bombs(245_000) }},
	{"many bombs of 1 KB", (*scene).smallBombs},
	{"full annotations, and 512 slow reviews", both((*scene).fullAnnotations, func(s *scene) []string { return s.slowReviews(512, 7*time.Second) })},
	{"deep objects", (*scene).deepObjects},
	{"wide objects", (*scene).wideObjects},
	{"long objects", (*scene).longObjects},
	{"large statuses", (*scene).largeStatuses},
	{"a flood of patches", (*scene).patches},
	{"a flood of objects", (*scene).many},
	{"a flood of frames", (*scene).frames},
	{"a flood of frames from 100 addresses", (*scene).updates},
	{"forged state, and 64 slow reviews", both((*scene).forgedState, func(s *scene) []string { return s.slowReviews(64, time.Duration(size(3, 7))*time.Second) })},
	{"forged state with a policy, and 1500 connections", both((*scene).refusedState, (*scene).slowHeaders)},
	{"big reviews", (*scene).bigReviews},
	{"reviews of updates that change all keys", (*scene).changedReviews},
	{"headers with many fields", (*scene).manyFields},
	{"responses that nobody reads", func(s *scene) []string { return s.unread(100) }},
	{"refusals of headers that nobody reads", func(s *scene) []string { return s.unread(400) }},
	{"noise", (*scene).noise},
	{"odd objects", (*scene).oddities},
	{"dense objects with slow handlers", (*scene).denseObjects},
	{"wide objects with full annotations", (*scene).fullWideObjects},
	{"objects and reviews that are large as a Go type", (*scene).typedObjects},
	{"objects that grow while handlers run", (*scene).growingObjects},
	{"medium objects with many sub-handlers", (*scene).manySubs},
	{"many handlers that read a large object", (*scene).largeReads},
	{"children", (*scene).children},
	{"an object that many owners refer to", (*scene).referrers},
}

// size returns how large an attack is: a size that costs `make test` little time, or the
// full size of `make attacks`.
func size(small, full int) int {
	if os.Getenv("GOPF_ATTACKS") == "full" {
		return full
	}
	return small
}

// both makes two attacks at the same time. Those on the network mostly wait, so objects
// attack meanwhile.
func both(one, other func(*scene) []string) func(*scene) []string {
	return func(s *scene) (blame []string) {
		var running sync.WaitGroup
		running.Go(func() { blame = one(s) })
		more := other(s)
		running.Wait()
		return append(blame, more...)
	}
}

// The attacks come one after another, because they share the memory of the operator.
func TestAttacksLeaveTheOperatorServingOthers(t *testing.T) {
	reserve(t)
	s := newScene(t)
	attacks := list
	if size(0, 1) == 1 { // it takes a minute
		attacks = append(slices.Clone(list), attack{"dense, wide and long objects and reviews together", (*scene).together})
	}
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			s := s.of(t)
			s.resetPeak()
			began, op, server := time.Now(), processTime([]int{s.op.ID()}), processTime([]int{s.server})
			defer func() {
				t.Logf("all of it took %v, and of the processors the operator took %v, the control plane %v",
					time.Since(began).Round(time.Millisecond), processTime([]int{s.op.ID()})-op, processTime([]int{s.server})-server)
			}()
			var blame []string
			s.during(func() { blame = a.do(s) })
			t.Logf("the attack took %v", time.Since(began).Round(time.Millisecond))
			s.unharmed()
			for _, name := range blame {
				s.blamed(name)
			}
			s.attacker.clear()
			if err := s.serve(); err != nil {
				t.Error(err)
			}
			s.unharmed()
		})
	}
}
