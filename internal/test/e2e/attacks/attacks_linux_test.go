package attacks_test

import "testing"

// An attack returns the names of the objects to blame, which the log must name.
type attack struct {
	name string
	do   func(*scene) (blame []string)
}

var list = []attack{
	{"a bomb of 27 KB", func(s *scene) []string { return s.bombs(27_000) }},
	{"a bomb of 245 KB", func(s *scene) []string { return s.bombs(245_000) }},
	{"full annotations", (*scene).fullAnnotations},
	{"deep objects", (*scene).deepObjects},
	{"wide objects", (*scene).wideObjects},
	{"long objects", (*scene).longObjects},
	{"large statuses", (*scene).largeStatuses},
	{"a flood of patches", (*scene).patches},
	{"a flood of objects", (*scene).many},
	{"forged state", (*scene).forgedState},
	{"forged state with a policy", (*scene).refusedState},
	{"64 slow reviews", func(s *scene) []string { return s.slowReviews(64) }},
	{"512 slow reviews", func(s *scene) []string { return s.slowReviews(512) }},
	{"1500 connections", (*scene).slowHeaders},
	{"big reviews", (*scene).bigReviews},
	{"noise", (*scene).noise},
	{"odd objects", (*scene).oddities},
}

// The attacks come one after another, because they share the memory of the operator.
func TestAttacksLeaveTheOperatorServingOthers(t *testing.T) {
	reserve(t)
	s := newScene(t)
	for _, a := range list {
		t.Run(a.name, func(t *testing.T) {
			s := s.of(t)
			s.resetPeak()
			var blame []string
			s.during(func() { blame = a.do(s) })
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
