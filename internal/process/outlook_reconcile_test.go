package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/internal/childwatch"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/reconcile"
	"gopf.dev/gopf/kind"
)

// TestTheOutlookNeverContradictsReconcileHandlers compares the outlook on random objects
// with the next turn of the engine: the reconcile handlers that it calls, and the children
// that it deletes. Clients change the objects and their children, handlers end with random
// outcomes, and processes restart.
func TestTheOutlookNeverContradictsReconcileHandlers(t *testing.T) {
	count, seen := outlookCount(t), map[string]int{}
	storages := someStorages()
	names := slices.Sorted(maps.Keys(storages))
	for seed := uint64(0); count > 0; seed++ {
		synctest.Test(t, func(t *testing.T) {
			w := &reconcileWorld{outlookWorld: &outlookWorld{T: t, rnd: rand.New(rand.NewPCG(seed, 11)), seen: seen, seed: seed}}
			count -= w.live(storages[names[int(seed)%len(names)]])
		})
		if t.Failed() {
			return
		}
	}
	for _, want := range []string{"start due", "start unmatched", "start blocked", "due called", "delayed", "failed", "matched", "matched called", "unmatched", "blocked",
		"delayed, and a child changed: called", "failed, and a child changed: called", "changed since the call", "delay is over",
		"next paused", "next elsewhere", "next deleteChildren", "next removeFinalizer", "waits for readiness", "deletes children"} {
		if seen[want] == 0 {
			t.Errorf("the random objects never had %q; the test compares too little", want)
		}
	}
	t.Log(seen)
}

// reconcileWorld is one object with reconcile handlers, and its API server.
type reconcileWorld struct {
	*outlookWorld
	server *familyServer
	memory *Memory
	called []string        // the reconcile handlers
	missed map[string]bool // the handlers that were not called at the start or when a child changed, for example in a pause
}

// childInfo is the kind of the children.
var childInfo = kind.Info{Group: "example.com", Version: "v1", Plural: "widgets", Kind: "Widget", Namespaced: true, Preferred: true}

// live runs the history of one object, and returns the number of compared states.
func (w *reconcileWorld) live(set func(*Config)) (compared int) {
	w.k = newKind(newCluster(), nil)
	w.k.Resource.Subresources = pickOne(w.outlookWorld, nil, []string{"status"})
	w.k.Alarm = func(string, time.Time) {}
	set(&w.k.Config)
	for i := range w.rnd.IntN(3) {
		h := w.handler(i)
		inner := h.Call
		h.Call = func(ctx context.Context, r *handler.Request) error { // it must not change the object before reconcile handlers see it
			err := inner(ctx, r)
			*r.Patch = patch.Patch{}
			return err
		}
		w.k.Handlers = append(w.k.Handlers, h)
	}
	w.k.Fields = w.k.Handlers.Fields()
	w.server = &familyServer{world: w, children: map[string]map[string]any{}}
	w.k.API = w.server
	conditions := w.chance(2)
	w.k.Reconcile = &Reconcile{
		Listed:     func(*handler.Handler) bool { return true },
		Conditions: func(context.Context, kind.Info) (bool, bool) { return conditions, conditions },
	}
	for i := range 1 + w.rnd.IntN(3) {
		w.k.Reconcile.Handlers = append(w.k.Reconcile.Handlers, w.reconciler(i))
	}
	if w.chance(8) {
		w.k.HandedOver = func(b *object.Body) bool { return b.Labels()["tier"] == "b" }
	}
	w.fields = map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "n", "namespace": "ns", "uid": "u" + fmt.Sprint(w.seed), "generation": int64(1), "finalizers": pickOne(w.outlookWorld, []any{}, []any{"other"})},
	}
	w.restart(false)
	for range 25 {
		started := w.chance(8)
		if started {
			w.restart(true)
		}
		var wake *Wake
		for range w.rnd.IntN(3) {
			w.edit()
		}
		if !started && w.chance(4) {
			wake = w.drift()
		}
		w.compare(started, wake)
		compared++
		if w.deleting() && len(w.fields["metadata"].(map[string]any)["finalizers"].([]any)) == 0 {
			break
		}
		time.Sleep(pickOne(w.outlookWorld, 0, time.Microsecond, time.Second, time.Minute, time.Hour))
	}
	return compared
}

// restart replaces the process. Its store has the live children.
func (w *reconcileWorld) restart(listed bool) {
	marks := uint64(0)
	store := childwatch.NewStore("op", func() uint64 { marks++; return marks })
	w.k.Reconcile.Runner = &reconcile.Runner{
		Store: store, Name: "op",
		Objects: &apiclient.Objects{API: w.server, Known: func() []kind.Info { return []kind.Info{childInfo} }},
	}
	for _, name := range slices.Sorted(maps.Keys(w.server.children)) {
		w.server.show(name)
	}
	body := w.body()
	w.missed = map[string]bool{}
	for _, h := range w.k.Reconcile.Handlers {
		w.missed[h.ID] = true // a process calls each handler once after its start, or after the pause
	}
	w.memory = memoryOf(body.Identity, listed)
}

// reconciler returns a random reconcile handler with random outcomes.
func (w *reconcileWorld) reconciler(i int) *handler.Handler {
	h := &handler.Handler{ID: "r" + strconv.Itoa(i), Reconcile: &handler.Reconcile{
		Owned: []handler.Owned{{Of: kind.Plural("widgets")}}, Every: pickOne(w.outlookWorld, 0, 0, 90*time.Second), NoConditions: w.chance(3),
	}}
	w.filters(h)
	if w.chance(5) {
		h.Limits.Retries = handler.Some(1 + w.rnd.IntN(3))
	}
	h.Call = func(_ context.Context, r *handler.Request) error {
		w.called = append(w.called, h.ID)
		var before *handler.Wanted
		for n := range w.rnd.IntN(3) {
			one := &handler.Wanted{Info: childInfo, Fields: map[string]any{"metadata": map[string]any{}, "spec": map[string]any{"value": pickOne(w.outlookWorld, "a", "b")}}}
			one.APIVersion, one.Kind, one.Namespace, one.Name = "example.com/v1", "Widget", "ns", fmt.Sprint(h.ID, "-", n)
			if before != nil && w.chance(2) {
				one.DependsOn = []*handler.Wanted{before}
			}
			ready := !w.chance(3)
			one.Ready = func(*object.Body) bool { return ready }
			before = one
			r.Children.Wanted = append(r.Children.Wanted, one)
		}
		if w.chance(5) {
			r.Patch.Set(pickOne[any](w.outlookWorld, "a", "b"), "status", pickOne(w.outlookWorld, "m", "n"))
		}
		switch w.rnd.IntN(8) {
		case 0:
			return &handler.PermanentError{Err: errors.New("no")}
		case 1:
			return &handler.TemporaryError{Err: errors.New("later"), Delay: handler.Some(pickOne(w.outlookWorld, 0, time.Second, time.Minute, time.Hour))}
		case 2:
			w.seen["waits for readiness"]++
			return &handler.TemporaryError{Err: errors.New("not yet"), Wait: true, Delay: handler.Some(time.Minute)}
		case 3:
			return errors.New("oops")
		case 4:
			r.Children.Again = handler.Some(time.Minute)
		}
		return nil
	}
	return h
}

// drift changes or deletes a child as another client does. It returns the wake of the
// owner; nil means that there is no child.
func (w *reconcileWorld) drift() *Wake {
	names := slices.Sorted(maps.Keys(w.server.children))
	if len(names) == 0 {
		return nil
	}
	name := pickOne(w.outlookWorld, names...)
	if child := w.server.children[name]; w.chance(2) {
		w.server.remove(name)
	} else {
		child["spec"] = map[string]any{"value": "theirs"}
		w.server.stamp(child)
		w.server.show(name)
	}
	return &Wake{Owned: []kind.Info{childInfo}}
}

// body returns the object.
func (w *reconcileWorld) body() *object.Body {
	w.age++
	w.fields["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(w.age)
	body, err := object.FromMap(jsonvalue.Clone(w.fields).(map[string]any))
	if err != nil {
		w.Fatal(err)
	}
	return body
}

// compare compares the outlook with the next turn.
func (w *reconcileWorld) compare(started bool, wake *Wake) {
	body := w.body()
	o, err := w.k.Outlook(w.Context(), body.Undecoded(), started)
	if err != nil {
		w.Fatal(err)
	}
	w.calls, w.called, w.server.deleted = nil, nil, 0
	pausedBefore, living := o.Pause != nil, len(w.server.children)
	w.k.Turn(w.Context(), w.memory, Occasion{Event: &Event{Type: kube.Modified, Body: body}, Wake: wake})
	wrong := func(format string, args ...any) {
		w.Errorf("seed %d, state %d: "+format+"\noutlook %+v\ncalled %v, woken %v\n%s", append(append([]any{w.seed, w.age}, args...), o, w.called, wake != nil, body.Raw())...)
	}
	w.seen["next "+string(o.Next)]++
	for _, f := range o.Reconcile {
		called := slices.Contains(w.called, f.Handler.ID)
		w.missed[f.Handler.ID] = w.missed[f.Handler.ID] || wake != nil || o.Next == NextElsewhere
		w.judge(f, called, started, w.missed[f.Handler.ID], wrong)
		if called {
			w.missed[f.Handler.ID] = false
		}
	}
	w.judgeTeardown(o, body, living, wrong)
	if pausedBefore && len(w.called)+w.server.deleted > 0 {
		wrong("a paused object was reconciled")
	}
}

// judge fails the test if the engine did something else than the phase of a handler says.
func (w *reconcileWorld) judge(f Forecast, called, started, woken bool, wrong func(string, ...any)) {
	name := string(f.Phase)
	if started {
		name = "start " + name
	}
	if f.Phase == Due && called {
		w.seen["due called"]++
	}
	if !started && f.Phase == Due && f.Record != nil {
		if f.Record.Failure || time.Now().Before(f.Record.Delayed) {
			w.seen["changed since the call"]++
		} else {
			w.seen["delay is over"]++
		}
	}
	w.seen[name]++
	switch f.Phase {
	case Due:
		if !called {
			wrong("%s is due, but it was not called", f.Handler.ID)
		}
	case Delayed, Failed:
		if woken && called {
			w.seen[name+", and a child changed: called"]++
		}
		if called != woken {
			wrong("%s is %s, and a change of a child must call it; it was called: %v", f.Handler.ID, f.Phase, called)
		}
		if f.Phase == Delayed && !f.Until.After(time.Now()) {
			wrong("the delay of %s is over", f.Handler.ID)
		}
	case Unmatched, Blocked:
		if called || f.Why == "" {
			wrong("%s is %s because %q, but it was called: %v", f.Handler.ID, f.Phase, f.Why, called)
		}
	case Matched:
		if called {
			w.seen["matched called"]++
		}
		if started || woken && !called {
			wrong("%s applies, and the process started or a child changed; it was called: %v", f.Handler.ID, called)
		}
	default:
		wrong("the phase of %s is %q", f.Handler.ID, f.Phase)
	}
}

// judgeTeardown fails the test if the outlook on a deletion is wrong about the children.
func (w *reconcileWorld) judgeTeardown(o *Outlook, body *object.Body, living int, wrong func(string, ...any)) {
	if !body.Deleting {
		if o.Next == NextDeleteChildren {
			wrong("the object is not being deleted")
		}
		return
	}
	if w.server.deleted > 0 {
		w.seen["deletes children"]++
	}
	guarded := slices.Contains(w.fields["metadata"].(map[string]any)["finalizers"].([]any), any(w.k.Config.Finalizer))
	switch {
	case o.Next == NextDeleteChildren && (len(w.calls) > 0 || !o.Ordered):
		wrong("handlers come first, or there are no children to wait for")
	case o.Next == NextDeleteChildren && w.server.deleted < living && !w.server.refused:
		wrong("%d of %d children were deleted", w.server.deleted, living)
	case o.Next == NextDeleteChildren && guarded && !w.server.refused:
		wrong("the children are gone, but the finalizer is still there")
	case o.Next != NextDeleteChildren && o.Next != NextCall && o.Next != NextSend && w.server.deleted > 0:
		wrong("children were deleted")
	case o.Next == NextRemoveFinalizer && o.Ordered:
		wrong("the finalizer is removed before the children")
	}
}

// familyServer is an API server with the object and its children.
type familyServer struct {
	apiclient.API
	world    *reconcileWorld
	children map[string]map[string]any
	serial   int
	deleted  int  // deletions of children in this turn
	refused  bool // a deletion was refused in this turn
}

func (s *familyServer) Get(_ context.Context, t kube.Target) (*object.Body, error) {
	if t.Info.Plural != childInfo.Plural {
		return s.world.body(), nil
	}
	if s.children[t.Name] == nil {
		return nil, apierrors.NewNotFound(t.Info.GVR().GroupResource(), t.Name)
	}
	return s.child(t.Name)
}

// child returns a child with its managedFields.
func (s *familyServer) child(name string) (*object.Body, error) {
	raw, err := json.Marshal(s.children[name])
	if err != nil {
		return nil, err
	}
	return object.ParseWhole(raw)
}

func (s *familyServer) Patch(ctx context.Context, t kube.Target, kind types.PatchType, raw []byte, _ ...kube.Param) (*object.Body, error) {
	if t.Info.Plural == childInfo.Plural {
		return s.applyChild(ctx, t, raw)
	}
	if kind == types.MergePatchType {
		parsed, err := object.Parse(raw)
		if err != nil {
			return nil, err
		}
		patch.Apply(s.world.fields, parsed.Map())
		return s.world.body(), nil
	}
	steps, err := jsonpatch.DecodePatch(raw)
	if err != nil {
		return nil, err
	}
	s.world.age-- // the patch may test the version
	before := s.world.body()
	after, err := steps.Apply(before.Raw())
	if err != nil {
		s.world.Fatalf("%v: %s to %s", err, raw, before.Raw())
	}
	parsed, err := object.Parse(after)
	if err != nil {
		return nil, err
	}
	s.world.fields = parsed.Map()
	metadata := s.world.fields["metadata"].(map[string]any)
	if metadata["finalizers"] == nil {
		metadata["finalizers"] = []any{}
	}
	return s.world.body(), nil
}

// applyChild creates or replaces a child.
func (s *familyServer) applyChild(ctx context.Context, t kube.Target, raw []byte) (*object.Body, error) {
	if s.world.chance(10) {
		return nil, apierrors.NewForbidden(t.Info.GVR().GroupResource(), t.Name, errors.New("no"))
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	metadata := fields["metadata"].(map[string]any)
	s.serial++
	metadata["name"], metadata["namespace"], metadata["uid"] = t.Name, t.Namespace, fmt.Sprintf("%08x", s.serial)
	if before := s.children[t.Name]; before != nil {
		metadata["uid"] = before["metadata"].(map[string]any)["uid"]
	}
	s.stamp(fields)
	s.children[t.Name] = fields
	return s.Get(ctx, t)
}

// stamp gives a child a new version and new managed fields.
func (s *familyServer) stamp(child map[string]any) {
	s.serial++
	metadata := child["metadata"].(map[string]any)
	metadata["resourceVersion"] = strconv.Itoa(s.serial)
	metadata["managedFields"] = []any{map[string]any{"manager": "op", "operation": "Apply", "time": strconv.Itoa(s.serial), "fieldsV1": map[string]any{}}}
}

// show updates the store as a watch event does.
func (s *familyServer) show(name string) {
	body, err := s.child(name)
	if err != nil {
		s.world.Fatal(err)
	}
	store := s.world.k.Reconcile.Runner.Store
	child, err := store.Read(childInfo, body)
	if err != nil {
		s.world.Fatal(err)
	}
	store.Sent(child.Key, child)
}

// remove deletes a child, and shows that to the store.
func (s *familyServer) remove(name string) {
	store := s.world.k.Reconcile.Runner.Store
	for _, child := range store.Of(s.world.memory.UID()) {
		if child.Name == name {
			store.Dropped(child)
		}
	}
	delete(s.children, name)
}

func (s *familyServer) Delete(_ context.Context, t kube.Target, _ kube.DeleteOptions) error {
	if s.world.chance(10) {
		s.refused = true
		return apierrors.NewForbidden(t.Info.GVR().GroupResource(), t.Name, errors.New("no"))
	}
	if s.children[t.Name] == nil {
		return apierrors.NewNotFound(t.Info.GVR().GroupResource(), t.Name)
	}
	delete(s.children, t.Name)
	s.deleted++
	return nil
}
