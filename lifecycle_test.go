package gopf

import (
	"slices"
	"testing"
	"time"

	"gopf.dev/gopf/internal/handler"
)

func dueIDs(due []Due) (ids []string) {
	for _, d := range due {
		ids = append(ids, d.ID)
	}
	return ids
}

func TestLifecyclesChooseAmongTheHandlersThatAreDue(t *testing.T) {
	tried := []Due{{ID: "a", Attempts: 2}, {ID: "b", Attempts: 1}, {ID: "c", Attempts: 3}, {ID: "d", Attempts: 1}}
	cases := map[string]struct {
		choose Lifecycle
		due    []Due
		want   []string
	}{
		"AllAtOnce runs all in their order":                 {AllAtOnce, tried, []string{"a", "b", "c", "d"}},
		"OneByOne runs the first":                           {OneByOne, tried, []string{"a"}},
		"ASAP runs the first of those with fewest attempts": {ASAP, tried, []string{"b"}},
		"the default is ASAP":                               {DefaultSettings().Execution.Lifecycle, tried, []string{"b"}},
		"new operators have the default":                    {New().Settings.Execution.Lifecycle, tried, []string{"b"}},
		"AllAtOnce of none":                                 {AllAtOnce, nil, nil},
		"OneByOne of none":                                  {OneByOne, nil, nil},
		"ASAP of none":                                      {ASAP, nil, nil},
		"Randomized of none":                                {Randomized, nil, nil},
		"Shuffled of none":                                  {Shuffled, nil, nil},
		"Randomized of one":                                 {Randomized, tried[:1], []string{"a"}},
		"Shuffled of one":                                   {Shuffled, tried[:1], []string{"a"}},
	}
	for name, c := range cases {
		if got := dueIDs(c.choose(slices.Clone(c.due))); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// Of 200 choices among three handlers, the chance to miss one that is as likely as
// the others is below 1 in 10^34.
const choices = 200

func TestRandomizedChoosesEachHandlerSometimesAndOnlyOneAtATime(t *testing.T) {
	due := []Due{{ID: "a"}, {ID: "b"}, {ID: "c"}}
	seen := map[string]bool{}
	for range choices {
		chosen := Randomized(due)
		if len(chosen) != 1 {
			t.Fatalf("got %v", chosen)
		}
		seen[chosen[0].ID] = true
	}
	if len(seen) != len(due) {
		t.Errorf("only %v were ever chosen", seen)
	}
}

func TestShuffledRunsAllInAnyOrder(t *testing.T) {
	due := []Due{{ID: "a"}, {ID: "b"}, {ID: "c"}}
	first := map[string]bool{}
	for range choices {
		shuffled := dueIDs(Shuffled(due))
		first[shuffled[0]] = true
		if slices.Sort(shuffled); !slices.Equal(shuffled, []string{"a", "b", "c"}) {
			t.Fatalf("got %q", shuffled)
		}
		if given := dueIDs(due); !slices.Equal(given, []string{"a", "b", "c"}) {
			t.Fatalf("the given list was changed to %q", given)
		}
	}
	if len(first) != len(due) {
		t.Errorf("only %v ever came first", first)
	}
}

func TestLifecycleGetsDueHandlersAndSetsTheirOrder(t *testing.T) {
	began := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	var seen []Due
	reversed := Lifecycle(func(due []Due) []Due {
		seen = slices.Clone(due)
		slices.Reverse(due)
		return due
	})
	got := reversed.inEngine()([]handler.Due{{ID: "a", Attempts: 3, Started: began}, {ID: "b"}})
	if want := []Due{{ID: "a", Attempts: 3, Started: began}, {ID: "b"}}; !slices.Equal(seen, want) {
		t.Errorf("the lifecycle saw %v, want %v", seen, want)
	}
	if want := []handler.Due{{ID: "b"}, {ID: "a", Attempts: 3, Started: began}}; !slices.Equal(got, want) {
		t.Errorf("the engine got %v, want %v", got, want)
	}
}
