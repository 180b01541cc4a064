package childwatch

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/stream"
	"gopf.dev/gopf/internal/test/scaling"
	"gopf.dev/gopf/kind"
)

var secrets = kind.Info{Version: "v1", Plural: "secrets", Kind: "Secret", Namespaced: true, Preferred: true}

func referenced(t *testing.T, of kube.EventType, name, version, value string) stream.Event {
	t.Helper()
	body, err := object.Parse(fmt.Appendf(nil, `{"metadata":{"namespace":"a","name":%q,"uid":"uid-%s","resourceVersion":%q},"data":{"key":%q}}`, name, name, version, value))
	if err != nil {
		t.Fatal(err)
	}
	return stream.Event{Type: of, Body: body}
}

func TestReferencesWakeTheHandlersThatHaveThemAndNoOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testReferencesWakeHandlers)
}

func testReferencesWakeHandlers(t *testing.T) {
	of, err := kind.Parse("secrets")
	if err != nil {
		t.Fatal(err)
	}
	var woken []string
	refs := NewReferences(func(owner, handler string) { woken = append(woken, owner+" "+handler) }, math.MaxInt64)
	to := func(names ...string) (all []Reference) {
		for _, n := range names {
			all = append(all, Reference{Of: &of, Namespace: "a", Name: n})
		}
		return all
	}
	check := func(what string, want ...string) {
		t.Helper()
		synctest.Wait()
		slices.Sort(woken)
		if !slices.Equal(woken, want) {
			t.Errorf("%s wakes %q, want %q", what, woken, want)
		}
		woken = nil
	}
	refs.deliver(secrets, referenced(t, kube.Listed, "shared", "0", "u"))
	check("an item of a list before the first reference")
	_ = refs.Set("x", "a", "one", to("shared", "single"))
	_ = refs.Set("x", "a", "two", to("shared"))
	_ = refs.Set("y", "a", "one", to("shared"))
	refs.deliver(secrets, referenced(t, kube.Listed, "shared", "0", "u"))
	check("the same item of another list")
	refs.deliver(secrets, referenced(t, kube.Listed, "shared", "1", "v"))
	check("a changed item of another list", "x one", "x two", "y one")
	refs.deliver(secrets, referenced(t, kube.Modified, "shared", "2", "v"))
	check("a change of nothing but the version")
	refs.deliver(secrets, referenced(t, kube.Modified, "shared", "3", "w"))
	check("a change", "x one", "x two", "y one")
	refs.deliver(kind.Info{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true, Preferred: true}, referenced(t, kube.Added, "single", "4", "v"))
	check("an object of another kind")
	_ = refs.Set("x", "a", "one", to("single"))
	refs.deliver(secrets, referenced(t, kube.Deleted, "shared", "5", "w"))
	check("a deletion", "x two", "y one")
	refs.Drop("y")
	_ = refs.Set("x", "a", "one", nil)
	_ = refs.Set("x", "a", "two", nil)
	refs.wakes.done.Wait()
	if len(refs.named) > 0 || len(refs.owners["y"]) > 0 {
		t.Errorf("names %v and owners %v are left", refs.named, refs.owners)
	}
}

// The names come from objects of tenants, and a watch waits for the same lock.
func TestTheTimeForReferencesIsProportionalToTheirNumber(t *testing.T) {
	t.Parallel()
	of, err := kind.Parse("secrets")
	if err != nil {
		t.Fatal(err)
	}
	scaling.Check(t, 2_000, func(n int) {
		refs := NewReferences(func(string, string) {}, math.MaxInt64)
		many := make([]Reference, n)
		for i := range many {
			many[i] = Reference{Of: &of, Namespace: "a", Name: fmt.Sprint("secret-", i)}
		}
		for range 3 {
			_ = refs.Set("x", "a", "one", many)
		}
		refs.Drop("x")
		refs.wakes.done.Wait()
		if len(refs.named)+len(refs.owners) > 0 {
			t.Errorf("%d names and %d owners are left", len(refs.named), len(refs.owners))
		}
	})
}

// It is not parallel, because it measures memory.
func TestReferencesAreLimitedByMemory(t *testing.T) {
	of, err := kind.Parse("secrets")
	if err != nil {
		t.Fatal(err)
	}
	refs := NewReferences(func(string, string) {}, 256<<20)
	const each = 2_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	set := func(namespace string, i, n int) error {
		all := make([]Reference, n)
		for j := range all {
			all[j] = Reference{Of: &of, Namespace: namespace, Name: fmt.Sprint(strings.Repeat("s", 100), i, "-", j)}
		}
		return refs.Set(fmt.Sprint(namespace, i), namespace, "one", all)
	}
	owners := 0
	fill := func(namespace string) (kept int64) {
		for i := range 50 {
			err := set(namespace, i, each)
			switch {
			case err == nil:
				owners++
			case !errors.Is(err, ErrTooManyReferences):
				t.Fatal(err)
			}
		}
		return refs.counts[namespace]
	}
	if kept := fill("a"); kept > 16<<20 || kept < 15<<20 {
		t.Errorf("a namespace has %d KiB of references, want a sixteenth of the memory limit", kept>>10)
	}
	fill("b")
	if kept := fill("c"); kept > 1<<20 {
		t.Errorf("the third namespace has %d KiB of references, though two have an eighth of the memory limit", kept>>10)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if used := int64(after.HeapAlloc - min(after.HeapAlloc, before.HeapAlloc)); used > refs.used*5/4 || used < refs.used/2 {
		t.Errorf("references that count %d KiB take %d KiB", refs.used>>10, used>>10)
	}
	if err := set("a", 0, each+1000); !errors.Is(err, ErrTooManyReferences) {
		t.Errorf("more references than a namespace can have: %v", err)
	}
	for i := range 20 { // each of these is small
		if err := set(fmt.Sprint("other-", i), 0, 1000); err != nil {
			t.Errorf("two namespaces take the room of another: %v", err)
		}
		refs.Drop(fmt.Sprintf("other-%d0", i))
	}
	for i := range 50 {
		for _, namespace := range []string{"a", "b", "c"} {
			refs.Drop(fmt.Sprint(namespace, i))
		}
	}
	refs.wakes.done.Wait()
	if len(refs.counts)+len(refs.named)+len(refs.owners) > 0 || refs.used != 0 {
		t.Errorf("%v, %d bytes, %d names and %d owners are left", refs.counts, refs.used, len(refs.named), len(refs.owners))
	}
}

func TestReferencesWithoutAMemoryLimit(t *testing.T) {
	if l := referencesWithin(math.MaxInt64); l.each != maxReferences || l.all < 1<<40 {
		t.Errorf("got %+v", l)
	}
}

// The names that a function of Watches returns may be whole texts of a spec.
func TestLongNamesOfReferencesCountWithTheirLength(t *testing.T) {
	t.Parallel()
	of, err := kind.Parse("secrets")
	if err != nil {
		t.Fatal(err)
	}
	refs := NewReferences(func(string, string) {}, math.MaxInt64)
	const length = 256 << 10
	text := strings.Repeat("x", length)
	kept := 0
	for i := range 1000 {
		if err := refs.Set(fmt.Sprint(i), "tenant", "one", []Reference{{Of: &of, Name: text + fmt.Sprint(i)}}); err == nil {
			kept++
		} else if !errors.Is(err, ErrTooManyReferences) {
			t.Fatal(err)
		}
	}
	if most := maxReferences / length; kept > most || kept < most/2 {
		t.Errorf("%d names of %d bytes are kept, want at most %d", kept, length, most)
	}
	for i := range 1000 {
		refs.Drop(fmt.Sprint(i))
	}
	refs.wakes.done.Wait()
	if len(refs.counts)+len(refs.named)+len(refs.owners) > 0 {
		t.Errorf("%v, %d names and %d owners are left", refs.counts, len(refs.named), len(refs.owners))
	}
}

// A function of Watches may split a long text into names.
func TestReferencesDoNotKeepTheTextsTheirNamesArePartsOf(t *testing.T) {
	of, err := kind.Parse("secrets")
	if err != nil {
		t.Fatal(err)
	}
	refs := NewReferences(func(string, string) {}, math.MaxInt64)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const owners, length = 100, 1 << 20
	for i := range owners {
		text := strings.Repeat("x", length)
		if err := refs.Set(fmt.Sprint(i), "tenant", "one", []Reference{{Of: &of, Namespace: text[:5], Name: text[:10]}}); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if kept := after.HeapAlloc - min(after.HeapAlloc, before.HeapAlloc); kept > owners*length/10 {
		t.Errorf("%d owners keep %d bytes", owners, kept)
	}
	runtime.KeepAlive(refs)
}

// One owner may have as many references as its namespace. Watches and other turns need the lock.
func TestTheLockIsReleasedBetweenPartsOfTheReferences(t *testing.T) {
	t.Parallel()
	refs := NewReferences(func(string, string) {}, math.MaxInt64)
	const parts = 40
	var done atomic.Int32
	other := make(chan int32, 1)
	refs.inParts(parts*maxHeld, func(i int) {
		if i == 0 {
			go func() {
				refs.mu.Lock()
				defer refs.mu.Unlock()
				other <- done.Load()
			}()
		}
		for began := time.Now(); time.Since(began) < 5*time.Microsecond; { // of work
		}
		done.Add(1)
	})
	if at := <-other; at == parts*maxHeld {
		t.Error("another caller gets the lock only at the end")
	}
	if done.Load() != parts*maxHeld {
		t.Errorf("%d references were handled", done.Load())
	}
}

// Many objects of a tenant may refer to one name, and change or go one by one.
func TestReferencesToASharedNameAreChangedInProportionalTime(t *testing.T) {
	of, err := kind.Parse("secrets")
	if err != nil {
		t.Fatal(err)
	}
	scaling.Check(t, 1000, func(n int) {
		refs := NewReferences(func(string, string) {}, math.MaxInt64)
		set := func(i int, last string) {
			all := []Reference{{Of: &of, Namespace: "a", Name: "shared"}, {Of: &of, Namespace: "a", Name: "shared"}, {Of: &of, Namespace: "a", Name: last}}
			if err := refs.Set(fmt.Sprint("owner-", i), "a", "handler", all); err != nil {
				t.Fatal(err)
			}
		}
		for i := range n {
			set(i, "before")
		}
		for i := range n {
			set(i, "after")
		}
		uses := func(of string) int { return len(refs.to(name{"a", of}, "a").uses) }
		if uses("shared") != n || uses("after") != n || len(refs.named) != 2 {
			t.Fatalf("%d names are known", len(refs.named))
		}
		for i := range n {
			refs.Drop(fmt.Sprint("owner-", i))
		}
		refs.wakes.done.Wait()
		if len(refs.named)+len(refs.owners)+len(refs.counts) > 0 {
			t.Fatal("references are left")
		}
	})
}
