package childwatch

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/stream"
	"gopf.dev/gopf/kind"
)

// secretEvent is an event of a Secret with new content.
func secretEvent(t *testing.T, of kube.EventType, namespace, name, version string) stream.Event {
	t.Helper()
	body, err := object.Parse(fmt.Appendf(nil, `{"metadata":{"namespace":%q,"name":%q,"uid":"%s/%s","resourceVersion":%q},"data":{"key":%q}}`, namespace, name, namespace, name, version, version))
	if err != nil {
		t.Fatal(err)
	}
	return stream.Event{Type: of, Body: body}
}

func secretNamed(t *testing.T, namespace string, names ...string) (all []Reference) {
	t.Helper()
	of, err := kind.Parse("secrets")
	if err != nil {
		t.Fatal(err)
	}
	return namesOf(&of, namespace, names...)
}

func namesOf(of *kind.Selector, namespace string, names ...string) (all []Reference) {
	for _, n := range names {
		all = append(all, Reference{Of: of, Namespace: namespace, Name: n})
	}
	return all
}

func refer(t *testing.T, refs *References, owner, namespace string, to []Reference) {
	t.Helper()
	if err := refs.Set(owner, namespace, "handler", to); err != nil {
		t.Error(err)
	}
}

// One watch serves all namespaces. One tenant has many owners that refer to the same objects, and
// changes these again and again. Each wake takes time, because it competes with the turns.
func TestAWatchDoesNotWaitForTheOwnersOfAChangedObject(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const owners, targets, rounds = 2_000, 16, 50
		var mu sync.Mutex
		woken := map[string]int{}
		began := time.Now()
		var waited time.Duration
		refs := NewReferences(func(owner, _ string) {
			time.Sleep(20 * time.Microsecond)
			mu.Lock()
			defer mu.Unlock()
			woken[owner]++
			if owner == "bystander" {
				waited = time.Since(began)
			}
		}, math.MaxInt64)
		var names []string
		for i := range targets {
			names = append(names, fmt.Sprint("s", i))
		}
		for i := range owners {
			refer(t, refs, fmt.Sprint("o", i), "attacker", secretNamed(t, "attacker", names...))
		}
		refer(t, refs, "bystander", "bystander", secretNamed(t, "bystander", "s"))
		for version := range rounds {
			for _, n := range names {
				refs.deliver(secrets, secretEvent(t, kube.Modified, "attacker", n, fmt.Sprint(version)))
			}
		}
		refs.deliver(secrets, secretEvent(t, kube.Modified, "bystander", "s", "1"))
		if delivered := time.Since(began); delivered > 0 {
			t.Errorf("the watch waited for %v", delivered)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		refs.close()
		if waited > 10*time.Millisecond {
			t.Errorf("the owner of another tenant waited for %v", waited)
		}
		if len(woken) != owners+1 {
			t.Errorf("%d owners are woken", len(woken))
		}
		for owner, n := range woken {
			if n > 2*targets { // a round may have begun before the last change
				t.Fatalf("%s is woken %d times for %d names", owner, n, targets)
			}
		}
	})
}

// Owners of one tenant may refer to objects of others. These must not pay for that.
func TestNamespacesOfOwnersTakeTurnsForTheChangesOfOneObject(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var order []string
		refs := NewReferences(func(owner, _ string) {
			time.Sleep(time.Millisecond)
			order = append(order, owner)
		}, math.MaxInt64)
		for i := range 1_000 {
			refer(t, refs, fmt.Sprint("many-", i), "many", secretNamed(t, "own", "s", "other"))
		}
		refer(t, refs, "mine", "own", secretNamed(t, "own", "s", "other"))
		refer(t, refs, "third", "third", secretNamed(t, "own", "other"))
		refs.deliver(secrets, secretEvent(t, kube.Modified, "own", "s", "1"))
		refs.deliver(secrets, secretEvent(t, kube.Modified, "own", "other", "1"))
		refs.deliver(secrets, secretEvent(t, kube.Deleted, "own", "s", "2"))
		time.Sleep(time.Hour)
		synctest.Wait()
		for _, owner := range []string{"mine", "third"} {
			if at := slices.Index(order, owner); at < 0 || at > maxStep+1 {
				t.Errorf("%s is woken after %d others, want at most %d", owner, at, maxStep+1)
			}
		}
		for i := range 1_000 {
			if !slices.Contains(order, fmt.Sprint("many-", i)) {
				t.Fatalf("owner %d is not woken", i)
			}
		}
		refs.close()
	})
}

func TestAChangeDuringTheWakesOfItsNameWakesAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const owners = 3 * maxStep
		woken := map[string]int{}
		refs := NewReferences(func(owner, _ string) {
			time.Sleep(time.Millisecond)
			woken[owner]++
		}, math.MaxInt64)
		for i := range owners {
			refer(t, refs, fmt.Sprint(i), "a", secretNamed(t, "a", "s"))
		}
		refs.deliver(secrets, secretEvent(t, kube.Added, "a", "s", "1"))
		time.Sleep(owners / 2 * time.Millisecond)
		for _, version := range []string{"2", "3"} {
			refs.deliver(secrets, secretEvent(t, kube.Modified, "a", "s", version))
		}
		refs.deliver(secrets, secretEvent(t, kube.Deleted, "a", "s", "4"))
		time.Sleep(time.Hour)
		synctest.Wait()
		for i := range owners {
			if n := woken[fmt.Sprint(i)]; n != 2 {
				t.Fatalf("owner %d is woken %d times", i, n)
			}
		}
		refs.deliver(secrets, secretEvent(t, kube.Added, "a", "s", "5"))
		refs.close() // it drops the rest
		refs.deliver(secrets, secretEvent(t, kube.Modified, "a", "s", "6"))
		synctest.Wait()
		if w := &refs.wakes; w.running || len(w.changed)+len(w.lines)+len(w.order) > 0 {
			t.Errorf("after the end, %+v is left", w)
		}
	})
}

// Each owner reads the versions of the objects that it refers to in its turns, and replaces its
// references before. Owners come and go, and objects change, at any time. At the end, each
// owner has read the newest versions.
func TestNoWakeIsLost(t *testing.T) {
	t.Parallel()
	const owners, objects, changes = 500, 3, 200
	var versions [objects]atomic.Int64
	type owner struct {
		mu   sync.Mutex
		to   []int
		read [objects]int64
	}
	all, of := make([]*owner, owners), secretNamed(t, "a", "s")[0].Of
	var refs *References
	key := func(i int) (uid, namespace string) { return fmt.Sprint(i), fmt.Sprint("space-", i%3%2) }
	turn := func(i int, change bool) {
		o := all[i]
		o.mu.Lock()
		defer o.mu.Unlock()
		uid, namespace := key(i)
		if change {
			if rand.IntN(4) == 0 {
				refs.Drop(uid)
			}
			o.to = rand.Perm(objects)[:1+rand.IntN(objects)]
		}
		var names []string
		for _, n := range o.to {
			names = append(names, fmt.Sprint("s", n))
		}
		refer(t, refs, uid, namespace, namesOf(of, "a", names...))
		for _, n := range o.to {
			o.read[n] = versions[n].Load()
		}
	}
	refs = NewReferences(func(uid, _ string) {
		var i int
		fmt.Sscan(uid, &i)
		turn(i, false)
	}, math.MaxInt64)
	for i := range all {
		all[i] = &owner{to: []int{i % objects}}
		turn(i, true)
	}
	var running sync.WaitGroup
	for n := range objects { // the streams
		running.Go(func() {
			for v := range changes {
				versions[n].Store(int64(v) + 1)
				change := kube.Modified
				if v%10 == 9 {
					change = kube.Deleted
				}
				refs.deliver(secrets, secretEvent(t, change, "a", fmt.Sprint("s", n), fmt.Sprint(v)))
			}
		})
	}
	for range 4 {
		running.Go(func() {
			for range 1_000 {
				turn(rand.IntN(owners), true)
			}
		})
	}
	running.Wait()
	for ended := false; !ended; { // the goroutine ends when no change waits
		refs.mu.Lock()
		ended = !refs.wakes.running
		refs.mu.Unlock()
	}
	refs.close()
	var stale []string
	for i, o := range all {
		for _, n := range o.to {
			if o.read[n] != changes {
				stale = append(stale, fmt.Sprintf("owner %d has read version %d of %d", i, o.read[n], n))
			}
		}
	}
	if len(stale) > 0 {
		t.Errorf("%d reads are stale:\n%s", len(stale), strings.Join(stale[:min(5, len(stale))], "\n"))
	}
}
