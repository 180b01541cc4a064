package index

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// contents returns everything in an index, with sorted values.
func contents(x *Index[string, string]) map[string][]string {
	all := map[string][]string{}
	for key, v := range x.All() {
		all[key] = append(all[key], v)
	}
	for _, values := range all {
		slices.Sort(values)
	}
	return all
}

// intact checks that the chains contain exactly the values in the index.
func intact[K comparable, V any](t *testing.T, x *Index[K, V]) {
	t.Helper()
	intactChain(t, &x.order, len(x.keys))
	for s := range x.order.walk {
		intactChain(t, &s.values, s.values.size)
		if s.first.place.value.Load() == nil && s.first.sibling != nil {
			t.Errorf("%v: a removed entry keeps others in memory", s.key)
		}
	}
}

func intactChain[T any](t *testing.T, c *chain[T], size int) {
	t.Helper()
	var before *link[T]
	n := 0
	for l := c.first.Load(); l != nil; l = l.next.Load() {
		if l.before != before || l.value.Load() == nil {
			t.Errorf("link %d of %d is wrong", n, size)
		}
		before = l
		n++
	}
	if n != size || c.size != size {
		t.Errorf("%d links and a size of %d, want %d", n, c.size, size)
	}
}

func check(t *testing.T, x *Index[string, string], want map[string][]string) {
	t.Helper()
	intact(t, x)
	if diff := cmp.Diff(want, contents(x)); diff != "" {
		t.Errorf("All: -want +got\n%s", diff)
	}
	keys := slices.Sorted(x.Keys())
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), keys); diff != "" {
		t.Errorf("Keys: -want +got\n%s", diff)
	}
	if x.Len() != len(want) {
		t.Errorf("Len: got %d, want %d", x.Len(), len(want))
	}
	for key, values := range want {
		if got := slices.Sorted(x.Get(key)); !slices.Equal(got, values) {
			t.Errorf("Get(%q): got %q, want %q", key, got, values)
		}
		one, found := x.One(key)
		if !x.Has(key) || x.Count(key) != len(values) || !found || !slices.Contains(values, one) {
			t.Errorf("%q: Has %v, Count %d, One %q %v; want %q", key, x.Has(key), x.Count(key), one, found, values)
		}
	}
}

func TestObjectsHaveOneValueUnderEachOfTheirKeys(t *testing.T) {
	type m = map[string]string
	steps := []struct {
		title  string
		object string
		values m
		want   map[string][]string
	}{
		{"several keys of one object", "a", m{"x": "a1", "y": "a2"}, map[string][]string{"x": {"a1"}, "y": {"a2"}}},
		{"several objects under one key", "b", m{"x": "b1"}, map[string][]string{"x": {"a1", "b1"}, "y": {"a2"}}},
		{"equal values of two objects", "c", m{"x": "b1"}, map[string][]string{"x": {"a1", "b1", "b1"}, "y": {"a2"}}},
		{"another value under the same key", "b", m{"x": "b2"}, map[string][]string{"x": {"a1", "b1", "b2"}, "y": {"a2"}}},
		{"keys are dropped and added", "a", m{"y": "a3", "z": "a4"}, map[string][]string{"x": {"b1", "b2"}, "y": {"a3"}, "z": {"a4"}}},
		{"an emptied key is gone", "a", m{"z": "a4"}, map[string][]string{"x": {"b1", "b2"}, "z": {"a4"}}},
		{"a nil map removes the object", "b", nil, map[string][]string{"x": {"b1"}, "z": {"a4"}}},
		{"an empty map removes the object", "c", m{}, map[string][]string{"z": {"a4"}}},
		{"an empty map for an unknown object", "d", m{}, map[string][]string{"z": {"a4"}}},
		{"a removed key is used again", "b", m{"x": "b5"}, map[string][]string{"x": {"b5"}, "z": {"a4"}}},
	}
	x := New[string, string]()
	check(t, x, map[string][]string{})
	for _, step := range steps {
		before := maps.Clone(step.values)
		x.Put(step.object, step.values)
		t.Run(step.title, func(t *testing.T) { check(t, x, step.want) })
		if !maps.Equal(before, step.values) {
			t.Errorf("%s: the map was changed to %v", step.title, step.values)
		}
	}
	x.Remove("a")
	x.Remove("unknown")
	check(t, x, map[string][]string{"x": {"b5"}})
	x.Remove("b")
	check(t, x, map[string][]string{})
	if len(x.objects) != 0 {
		t.Errorf("%d objects remain without values", len(x.objects))
	}
}

func TestNothingIsFoundUnderUnknownKeys(t *testing.T) {
	x := New[string, int]()
	x.Put("a", map[string]int{"known": 0})
	if _, found := x.One("unknown"); found || x.Has("unknown") || x.Count("unknown") != 0 {
		t.Error("found a value under an unknown key")
	}
	for v := range x.Get("unknown") {
		t.Errorf("got %v under an unknown key", v)
	}
	if v, found := x.One("known"); !found || v != 0 {
		t.Error("a zero value is not found")
	}
}

func TestKeysThatCannotBeLookedUpAreSkipped(t *testing.T) {
	x := New[float64, string]()
	x.Put("a", map[float64]string{math.NaN(): "lost", 1: "found"})
	x.Put("a", map[float64]string{math.NaN(): "lost"})
	x.Remove("a")
	if x.Len() != 0 || len(x.objects) != 0 {
		t.Errorf("%d keys and %d objects remain", x.Len(), len(x.objects))
	}
}

func TestReplaceAcceptsOnlyItsMapType(t *testing.T) {
	x := New[string, string]()
	var erased Target = x
	erased.Replace("a", map[string]string{"k": "v"})
	check(t, x, map[string][]string{"k": {"v"}})
	erased.Replace("a", map[string]string(nil))
	check(t, x, map[string][]string{})
	defer func() {
		if recover() == nil {
			t.Error("a map of another type was accepted")
		}
	}()
	erased.Replace("a", map[string]int{"k": 1})
}

func TestAnIndexHasTheLastValuesOfItsObjects(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	x, model := New[string, string](), map[string]map[string]string{}
	for step := range 3000 {
		object := fmt.Sprint(rng.IntN(12))
		values := map[string]string{}
		for range rng.IntN(6) {
			values[fmt.Sprint("k", rng.IntN(8))] = fmt.Sprint(object, "@", step)
		}
		if rng.IntN(5) == 0 {
			x.Remove(object)
			delete(model, object)
		} else {
			x.Put(object, values)
			model[object] = values
		}
		if step%10 != 0 {
			continue
		}
		want := map[string][]string{}
		for _, values := range model {
			for key, v := range values {
				want[key] = append(want[key], v)
			}
		}
		for _, values := range want {
			slices.Sort(values)
		}
		if check(t, x, want); t.Failed() {
			t.Fatalf("after step %d", step)
		}
	}
}

func TestAllocationsDoNotDependOnTheSizeOfTheIndex(t *testing.T) {
	small, large := filled(10, shapes["all under one key"]), filled(20_000, shapes["all under one key"])
	lookUps := map[string]func(){
		"Has":   func() { large.Has("key") },
		"Count": func() { large.Count("key") },
		"One":   func() { large.One("key") },
		"Get": func() {
			for range large.Get("key") {
				break
			}
		},
	}
	for name, run := range lookUps {
		if n := testing.AllocsPerRun(100, run); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
	values := map[string]string{"key": "another"}
	update := func(x bench) func() {
		return func() { x.Put(x.objects[5], values); x.Remove(x.objects[7]); x.Put(x.objects[7], values) }
	}
	if s, l := testing.AllocsPerRun(100, update(small)), testing.AllocsPerRun(100, update(large)); s != l {
		t.Errorf("updates allocate %v times in a small index, %v times in a large one", s, l)
	}
}
