package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// TestRandomChangesAreAllServedInTheEnd changes the cluster at random while an operator
// pauses, loses its lease, and comes back. At the end, the operator must serve exactly
// the objects that exist, each by one handler and one daemon at a time.
func TestRandomChangesAreAllServedInTheEnd(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				newChaos(t, c, seed).run()
			})
		})
	}
}

type chaos struct {
	t    *testing.T
	c    *gopftest.Cluster
	rand *rand.Rand
	op   *gopf.Operator
	cut  *line

	index   *gopf.IndexOf[string, string]
	defined bool
	made    int

	mu      sync.Mutex
	calls   map[string]int // running handlers, by object
	daemons map[string]int
}

func newChaos(t *testing.T, c *gopftest.Cluster, seed uint64) *chaos {
	ch := &chaos{
		t: t, c: c, rand: rand.New(rand.NewPCG(seed, 7)), op: gopf.New(), cut: &line{}, defined: true,
		calls: map[string]int{}, daemons: map[string]int{},
	}
	c.Define(t, gadgetKind)
	meet(t, c)
	s := &ch.op.Settings
	s.Peering.Identity, s.Election.Identity, s.Election.Name = "ours", "ours", "chaos"
	s.Election.Enabled = seed%2 == 0
	s.Queueing.ExitTimeout = time.Duration(seed%3) * time.Second
	x := gopf.For[*Example](ch.op, gadgets)
	ch.index = gopf.Index(x, "by-field", byField)
	handle := func(ctx context.Context, change *gopf.Change[*Example]) error {
		defer ch.enter(ch.calls, "handlers", string(change.Object.UID))()
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(ch.number(3000)) * time.Millisecond):
		}
		return ctx.Err()
	}
	x.OnCreate("create", handle)
	x.OnUpdate("update", handle)
	x.Daemon("daemon", func(ctx context.Context, d *gopf.Daemon[*Example]) error {
		defer ch.enter(ch.daemons, "daemons", string(d.Object.UID))()
		<-ctx.Done()
		time.Sleep(time.Duration(ch.number(2000)) * time.Millisecond)
		return nil
	}, gopf.Optional())
	return ch
}

// number returns a random number. Handlers may call it concurrently.
func (ch *chaos) number(n int) int {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return ch.rand.IntN(n)
}

// enter records that a handler or daemon runs for an object, and fails if there are two.
func (ch *chaos) enter(running map[string]int, what, uid string) (leave func()) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if running[uid]++; running[uid] > 1 {
		ch.t.Errorf("%d %s run for one object", running[uid], what)
	}
	return func() {
		ch.mu.Lock()
		defer ch.mu.Unlock()
		if running[uid]--; running[uid] == 0 {
			delete(running, uid)
		}
	}
}

func (ch *chaos) run() {
	stop := gopftest.Start(ch.t, ch.op, ch.c, gopf.Cluster(ch.cut.config(ch.c)), gopf.Namespaces("default", "app-*"))
	settle() // an unreachable cluster at startup is an error
	actions := []func(){
		func() { ch.op.Pause("chaos") }, ch.op.Unpause, ch.op.Unpause,
		func() { ch.cut.cut.Store(true) }, func() { ch.cut.cut.Store(false) }, func() { ch.cut.cut.Store(false) },
		ch.redefine, ch.toggleStatus, ch.toggleNamespace, ch.create, ch.create, ch.create, ch.change, ch.change, ch.remove,
		func() {
			ch.frozen(map[string]any{"priority": 100, "lifetime": 20, "lastseen": time.Now().UTC().Format(time.RFC3339)})
		},
		func() { ch.frozen(nil) },
		func() { ch.c.CutStreams() },
	}
	for range 60 {
		actions[ch.number(len(actions))]()
		time.Sleep(time.Duration(ch.number(4000)) * time.Millisecond)
	}
	ch.cut.cut.Store(false)
	ch.op.Unpause()
	ch.frozen(nil)
	if !ch.defined {
		ch.redefine()
	}
	time.Sleep(10 * time.Minute)
	synctest.Wait()
	ch.check()
	stop()
	if len(ch.calls)+len(ch.daemons) > 0 {
		ch.t.Errorf("after the stop, handlers still run for %v and daemons for %v", ch.calls, ch.daemons)
	}
}

func (ch *chaos) frozen(record any) {
	ch.c.Patch(ch.t, peerings, "", "default", map[string]any{"status": map[string]any{"human": record}})
}

func (ch *chaos) redefine() {
	if ch.defined = !ch.defined; ch.defined {
		ch.c.Define(ch.t, gadgetKind)
	} else {
		ch.c.Delete(ch.t, definitions, "", "gadgets.moving.dev")
		time.Sleep(time.Second) // until its objects are also gone
	}
}

func (ch *chaos) toggleStatus() {
	if !ch.defined {
		return
	}
	crd := ch.c.Get(ch.t, definitions, "", "gadgets.moving.dev")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	version := versions[0].(map[string]any)
	if version["subresources"] == nil {
		version["subresources"] = map[string]any{"status": map[string]any{}}
	} else {
		delete(version, "subresources")
	}
	_ = unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions")
	ch.c.Update(ch.t, crd)
}

func (ch *chaos) toggleNamespace() {
	name := fmt.Sprint("app-", ch.number(2))
	if _, exists := ch.c.Lookup(ch.t, "v1/namespaces", "", name); !exists {
		ch.c.CreateNamespace(ch.t, name)
		return
	}
	if ch.defined {
		for _, g := range ch.c.List(ch.t, gadgets, name) {
			ch.c.Delete(ch.t, gadgets, name, g.GetName())
		}
	}
	ch.c.Delete(ch.t, "v1/namespaces", "", name)
}

// somewhere returns an existing namespace.
func (ch *chaos) somewhere() string {
	name := fmt.Sprint("app-", ch.number(2))
	ns, exists := ch.c.Lookup(ch.t, "v1/namespaces", "", name)
	if !exists || ns.GetDeletionTimestamp() != nil {
		return "default"
	}
	return name
}

func (ch *chaos) create() {
	if ch.defined {
		ch.made++
		ch.c.Create(ch.t, gadget(fmt.Sprint("g", ch.made), ch.somewhere()))
	}
}

func (ch *chaos) one() *unstructured.Unstructured {
	if !ch.defined {
		return nil
	}
	all := ch.c.List(ch.t, gadgets, "")
	if len(all) == 0 {
		return nil
	}
	return all[ch.number(len(all))]
}

func (ch *chaos) change() {
	if g := ch.one(); g != nil {
		ch.c.Patch(ch.t, gadgets, g.GetNamespace(), g.GetName(), map[string]any{"spec": map[string]any{"items": []any{fmt.Sprint(ch.number(1000))}}})
	}
}

func (ch *chaos) remove() {
	if g := ch.one(); g != nil {
		ch.c.Delete(ch.t, gadgets, g.GetNamespace(), g.GetName())
	}
}

// check compares the served objects with the existing ones.
func (ch *chaos) check() {
	var names, uids []string
	for _, g := range ch.c.List(ch.t, gadgets, "") {
		names, uids = append(names, g.GetName()), append(uids, string(g.GetUID()))
		if g.GetAnnotations()[annotated] == "" {
			ch.t.Errorf("%s/%s was not handled", g.GetNamespace(), g.GetName())
		}
	}
	slices.Sort(names)
	if got := values(ch.index, "a"); !slices.Equal(got, names) {
		ch.t.Errorf("the index has %q, want %q", got, names)
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	for _, uid := range uids {
		if ch.daemons[uid] != 1 {
			ch.t.Errorf("%d daemons run for %s", ch.daemons[uid], uid)
		}
	}
	if len(ch.daemons) != len(uids) || len(ch.calls) > 0 {
		ch.t.Errorf("daemons run for %d objects and handlers for %d, there are %d objects", len(ch.daemons), len(ch.calls), len(uids))
	}
}
