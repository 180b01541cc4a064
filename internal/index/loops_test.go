package index

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"weak"

	"github.com/google/go-cmp/cmp"
)

// one returns the values of an object in an index with only one key.
func one(v string) map[string]string { return map[string]string{"key": v} }

// numbered returns an index of objects 0…n-1, each with its own name under the key.
func numbered(n int) *Index[string, string] {
	x := New[string, string]()
	for i := range n {
		x.Put(fmt.Sprint(i), one(fmt.Sprint(i)))
	}
	return x
}

func TestALoopBodyMayChangeTheIndex(t *testing.T) {
	cases := map[string]struct {
		// body is called for each value of 0…5, which are yielded as 5…0.
		body func(x *Index[string, string], v string)
		want []string
	}{
		"look up": {
			func(x *Index[string, string], _ string) { _, _ = x.One("key"); x.Count("key"); contents(x) },
			[]string{"5", "4", "3", "2", "1", "0"},
		},
		"remove the current one": {
			func(x *Index[string, string], v string) { x.Remove(v) },
			[]string{"5", "4", "3", "2", "1", "0"},
		},
		"remove the next ones": {
			func(x *Index[string, string], v string) {
				if v == "4" {
					x.Remove("3")
					x.Remove("2")
				}
			},
			[]string{"5", "4", "1", "0"},
		},
		"remove the current one and then the next ones": {
			func(x *Index[string, string], v string) {
				if v == "4" {
					x.Remove("4")
					x.Remove("3")
					x.Remove("2")
				}
			},
			[]string{"5", "4", "1", "0"},
		},
		"remove all": {
			func(x *Index[string, string], v string) {
				for i := range 6 {
					x.Remove(fmt.Sprint(i))
				}
			},
			[]string{"5"},
		},
		"remove all and put them back": {
			func(x *Index[string, string], v string) {
				for i := range 6 {
					x.Remove(fmt.Sprint(i))
				}
				for i := range 6 {
					x.Put(fmt.Sprint(i), one("again"))
				}
			},
			[]string{"5"},
		},
		"remove one and put it back": {
			func(x *Index[string, string], _ string) { x.Remove("1"); x.Put("1", one("again")) },
			[]string{"5", "4", "3", "2", "0"},
		},
		"replace all": {
			func(x *Index[string, string], v string) {
				for i := range 6 {
					x.Put(fmt.Sprint(i), one(fmt.Sprint(i)+" after "+v[:1]))
				}
			},
			[]string{"5", "4 after 5", "3 after 4", "2 after 3", "1 after 2", "0 after 1"},
		},
		"add": {
			func(x *Index[string, string], v string) { x.Put("new"+v, one("new")) },
			[]string{"5", "4", "3", "2", "1", "0"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			x := numbered(6)
			var got []string
			for v := range x.Get("key") {
				got = append(got, v)
				c.body(x, v)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestKeysMayChangeInALoopOverThem(t *testing.T) {
	x := New[string, string]()
	for _, key := range []string{"a", "b", "c", "d"} {
		x.Put(key, map[string]string{key: "v"})
	}
	var got []string
	for key := range x.Keys() {
		got = append(got, key)
		if key == "c" {
			x.Remove("c")
			x.Remove("b")
			x.Put("b", map[string]string{"b": "again"})
			x.Put("e", map[string]string{"e": "new"})
		}
	}
	if diff := cmp.Diff([]string{"d", "c", "a"}, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestALoopDoesNotBlockOthers(t *testing.T) {
	x := numbered(3)
	for range x.All() {
		var others sync.WaitGroup
		for i := range 10 {
			others.Go(func() {
				x.Put(fmt.Sprint("other", i), one("other"))
				for range x.Get("key") {
					x.Remove(fmt.Sprint("other", i))
				}
			})
		}
		others.Wait() // would block forever if the loop held a lock
	}
}

func TestASequenceCanBeReusedAndSeesNewValues(t *testing.T) {
	x := New[string, string]()
	values := x.Get("key")
	if got := slices.Collect(values); len(got) != 0 {
		t.Errorf("got %q, want nothing", got)
	}
	x.Put("a", one("v"))
	if got := slices.Collect(values); !slices.Equal(got, []string{"v"}) {
		t.Errorf("got %q, want the value that was put meanwhile", got)
	}
}

func TestStableValuesAreYieldedOnceDuringConcurrentChanges(t *testing.T) {
	const stable, restless, rounds = 200, 50, 60
	x := New[string, int]()
	var stop atomic.Bool
	var writers, readers sync.WaitGroup
	for i := range stable {
		x.Put(fmt.Sprint("stable", i), map[string]int{"key": i})
		x.Put(fmt.Sprint("restless", i%restless), map[string]int{"key": -1, "other": -1})
	}
	for w := range 4 {
		writers.Go(func() {
			for n := 0; !stop.Load(); n++ {
				object := fmt.Sprint("restless", (n*4+w)%restless)
				switch n % 3 {
				case 0:
					x.Remove(object)
				case 1:
					x.Put(object, map[string]int{"other": -n})
				case 2:
					x.Put(object, map[string]int{"key": -1 - n, "other": -n})
				}
				x.Put(fmt.Sprint("stable", n%stable), map[string]int{"key": n % stable}) // the same value again
			}
		})
	}
	for range 4 {
		readers.Go(func() {
			for range rounds {
				times := make([]int, stable)
				for v := range x.Get("key") {
					if v >= 0 {
						times[v]++
					}
				}
				for key, v := range x.All() {
					if key == "key" && v >= 0 {
						times[v]++
					}
				}
				if i := slices.IndexFunc(times, func(n int) bool { return n != 2 }); i >= 0 {
					t.Errorf("value %d was yielded %d times by two loops", i, times[i])
				}
			}
		})
	}
	readers.Wait()
	stop.Store(true)
	writers.Wait()
}

func TestReplacedAndRemovedValuesAreReleased(t *testing.T) {
	x := New[string, *[64]byte]()
	put := func(object string) weak.Pointer[[64]byte] {
		v := new([64]byte)
		x.Put(object, map[string]*[64]byte{"key": v, object: v})
		return weak.Make(v)
	}
	replaced, removed := put("a"), put("b")
	kept := put("a")
	x.Remove("b")
	runtime.GC()
	if replaced.Value() != nil || removed.Value() != nil {
		t.Error("the index keeps removed values in memory")
	}
	if v, _ := x.One("key"); v != kept.Value() {
		t.Error("the value is missing")
	}
}
