package metacontroller

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
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
	for last := (key{0, "a", "0"}); ; {
		next, ok := g.leave(last)
		if !ok {
			break
		}
		order, last = append(order, next.namespace+next.name), next
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

func TestANamespaceGetsOnlyItsPartOfTheSlots(t *testing.T) {
	g := &gate{limit: 3, each: 2}
	enter := func(namespace, name string, want bool) {
		t.Helper()
		if got := g.enter(key{0, namespace, name}); got != want {
			t.Errorf("%s/%s got a slot: %v", namespace, name, got)
		}
	}
	leave := func(namespace, name, want string) {
		t.Helper()
		next, _ := g.leave(key{0, namespace, name})
		if got := next.namespace + next.name; got != want {
			t.Errorf("%q gets the slot, want %q", got, want)
		}
		if want != "" && !g.has(next) {
			t.Errorf("%s has no slot", want)
		}
	}
	enter("a", "0", true)
	enter("a", "1", true)
	enter("a", "2", false)
	enter("a", "3", false)
	enter("b", "0", true)
	enter("b", "1", false)
	leave("b", "0", "b1") // the namespace a has its part
	leave("b", "1", "")
	leave("a", "0", "a2")
	leave("a", "1", "a3")
	leave("a", "2", "")
	leave("a", "3", "")
	if g.busy != 0 || len(g.used)+len(g.parked)+len(g.granted)+g.waiting.Len() > 0 {
		t.Errorf("left: %d slots, %v, %v, %v", g.busy, g.used, g.parked, g.granted)
	}
}

// Each call for a parent of a tenant takes long. Another tenant waits for none of them.
func TestSlowSyncsOfANamespaceLeaveAWorkerForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, bystander := time.Now(), time.Duration(0)
		synced := map[string]bool{}
		var mu sync.Mutex
		c := newStage(t, Options{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			var request struct {
				Parent unstructured.Unstructured `json:"parent"`
			}
			if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
				return nil, err
			}
			if request.Parent.GetNamespace() == "default" {
				time.Sleep(9 * time.Second)
			}
			mu.Lock()
			defer mu.Unlock()
			if synced[request.Parent.GetName()] = true; request.Parent.GetNamespace() == "tenant" && bystander == 0 {
				bystander = time.Since(began)
			}
			return respond(r, nil, map[string]any{"body": map[string]any{}}), nil
		})})
		c.CreateNamespace(t, "tenant")
		for i := range 20 {
			createThing(t, c, fmt.Sprint("p-", i), 1)
		}
		c.Create(t, controllerOf("http://hooks.test", map[string]any{"apiVersion": "ctl.example.com/v1", "resource": "leaves"}))
		time.Sleep(5 * time.Second)
		mu.Lock()
		began = time.Now()
		mu.Unlock()
		o := thing()
		o.SetNamespace("tenant")
		c.Create(t, o)
		time.Sleep(5 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if bystander == 0 || bystander > time.Second {
			t.Errorf("the parent of the other tenant waited for %v", bystander)
		}
		if len(synced) != 21 {
			t.Errorf("%d parents were synced", len(synced))
		}
	})
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
