package metacontroller

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestNamespacesTakeTurnsInTheQueue(t *testing.T) {
	q := newQueue()
	defer q.ShutDown()
	for i := range 200 {
		q.Add(key{0, "attacker", fmt.Sprint(i)})
	}
	q.Add(key{0, "tenant", "p"})
	q.Add(key{0, "", "cluster-scoped"})
	var got []string
	for range 202 {
		k, _ := q.Get()
		got = append(got, k.namespace+"/"+k.name)
		q.Done(k)
	}
	if want := []string{"attacker/0", "tenant/p", "/cluster-scoped", "attacker/1", "attacker/2"}; !slices.Equal(got[:5], want) {
		t.Errorf("the order is %q, want %q", got[:5], want)
	}
	if got[201] != "attacker/199" {
		t.Errorf("the last one is %s", got[201])
	}
}

func TestTurnsKeepNothingOfServedNamespaces(t *testing.T) {
	q := &turns{}
	for round := range 3 {
		for i := range 100 {
			q.Push(key{0, fmt.Sprint("n", i%10), fmt.Sprint(round, i)})
		}
		seen := map[key]bool{}
		for n := 100; n > 0; n-- {
			if q.Len() != n {
				t.Fatalf("%d parents, want %d", q.Len(), n)
			}
			seen[q.Pop()] = true
		}
		if len(seen) != 100 || len(q.waiting) > 0 || len(q.next) > 0 {
			t.Fatalf("%d parents were served; left: %v, %v", len(seen), q.waiting, q.next)
		}
	}
}

func TestFailuresOfANamespaceDoNotDelayTheRetriesOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		defer q.ShutDown()
		for i := range 2000 {
			q.AddRateLimited(key{0, "attacker", fmt.Sprint(i)})
		}
		began := time.Now()
		q.AddRateLimited(key{0, "tenant", "p"})
		for {
			k, _ := q.Get()
			q.Done(k)
			if k.namespace == "tenant" {
				break
			}
		}
		if waited := time.Since(began); waited > time.Second {
			t.Errorf("the first retry of the other tenant came after %v", waited)
		}
		last := 0
		for range 1000 {
			k, _ := q.Get()
			q.Done(k)
			last++
		}
		if rate := float64(last) / time.Since(began).Seconds(); rate > 12 {
			t.Errorf("the attacker's parents were retried at %.0f per second", rate)
		}
	})
}

func TestRetriesForgetIdleNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &retries{}
		for i := range 3 * manyNamespaces {
			if d := r.When(key{0, fmt.Sprint(i), "p"}); d > 0 {
				t.Fatalf("a first retry has a delay of %v", d)
			}
		}
		time.Sleep(time.Minute)
		r.When(key{0, "n", "p"})
		if len(r.last) != 1 {
			t.Errorf("%d namespaces are kept", len(r.last))
		}
	})
}

func TestASlotForLargeObjectsGoesToEachNamespaceInTurn(t *testing.T) {
	g := &gate{limit: 1}
	if !g.enter(key{0, "a", "0"}) {
		t.Fatal("the free gate let no parent in")
	}
	for i := 1; i < 4; i++ {
		for range 2 { // a parent may be queued again while it waits
			if g.enter(key{0, "a", fmt.Sprint(i)}) {
				t.Fatal("the full gate let a parent in")
			}
		}
	}
	g.enter(key{0, "b", "0"})
	var order []string
	for {
		next, ok := g.leave()
		if !ok {
			break
		}
		order = append(order, next.namespace+next.name)
		if next.namespace != "c" && g.enter(key{0, "c", "0"}) {
			t.Fatal("a granted slot was given twice")
		}
		if !g.has(next) || g.has(next) {
			t.Fatal("a grant is not for one sync")
		}
		if next.namespace == "c" {
			break
		}
	}
	if want := []string{"a1", "b0", "a2", "c0"}; !slices.Equal(order, want) {
		t.Errorf("the order is %q, want %q", order, want)
	}
}

// A tenant has many parents whose syncs are slow. Another tenant has one.
func TestAParentDoesNotWaitForTheQueueOfAnotherNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hook := &sizes{pause: time.Second}
		c := newStage(t, Options{Transport: hook})
		c.Create(t, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "tenant"}}})
		c.Create(t, controllerOf("http://hooks.test", map[string]any{"apiVersion": "ctl.example.com/v1", "resource": "leaves"}))
		time.Sleep(5 * time.Second)
		for i := range 100 {
			createThing(t, c, fmt.Sprint("p-", i), 1)
		}
		o := thing()
		o.SetName("bystander")
		o.SetNamespace("tenant")
		c.Create(t, o)
		time.Sleep(2500 * time.Millisecond)
		if hook.number("bystander") == 0 {
			t.Error("the parent of the other tenant still waits")
		}
		time.Sleep(time.Minute)
		if hook.number("p-99") == 0 {
			t.Error("the last parent of the first tenant was not synced")
		}
	})
}
