package handling_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

// ownedBy returns an operator with one reconcile handler, with its state in annotations
// or in the status.
func ownedBy(state string, fn func(*gopf.Reconciliation[*Example]) error, opts ...gopf.ReconcileOption) *gopf.Operator {
	op := gopf.New(gopf.Identity("children.gopf.dev"))
	op.Settings.Peering.Standalone = true
	if state == inStatus {
		op.Settings.Persistence = gopf.StateInStatus("children")
	}
	gopf.For[*Example](op, examples).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error { return fn(r) }, opts...)
	return op
}

// The places of the state.
const (
	inAnnotations = "annotations"
	inStatus      = "status"
)

func configChild(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"key": value}}
}

func webChild(name string) *appsv1.Deployment {
	labels, replicas := map[string]string{"app": name}, int32(1)
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}}
	web.Spec.Replicas, web.Spec.Selector = &replicas, &metav1.LabelSelector{MatchLabels: labels}
	web.Spec.Template.Labels = labels
	web.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "nginx"}}
	return web
}

func TestCreateOnlyFieldsStayThoseOfAnAutoscaler(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	o := s.start(ownedBy(inAnnotations, func(r *gopf.Reconciliation[*Example]) error {
		gopf.Want(r, webChild("web"), gopf.CreateOnlyFields("spec.replicas"))
		return nil
	}, gopf.Owns[*appsv1.Deployment]()), nil)
	s.Create(examples, "x", spec("a"))
	s.awaitValue(childDeployments, "web", "1", "spec", "replicas")
	kit.Await(t, "the field has a second manager", func() bool { return len(o.childWrites()) == 2 })
	for n := range 12 {
		s.Patch(childDeployments, "web", fields{"spec": fields{"replicas": int64(n + 2)}}, "scale")
		time.Sleep(100 * time.Millisecond)
	}
	s.Patch(examples, "x", spec("b")) // the handler has seen all earlier events when it is called for this
	time.Sleep(time.Second)
	if got := s.Get(childDeployments, "web"); fmt.Sprint(got.Object["spec"].(fields)["replicas"]) != "13" {
		t.Errorf("the child has %v replicas, want those of the autoscaler", got.Object["spec"].(fields)["replicas"])
	}
	if got := o.childWrites(); len(got) > 3 {
		t.Errorf("there were the writes %q, want the two of the creation and at most one that gives the field away", got)
	}
}

func TestRestartWithManyOwnersWritesNothing(t *testing.T) {
	t.Parallel()
	const owners = 30
	for _, state := range []string{inAnnotations, inStatus} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			s := newSpace(t)
			var called atomic.Int64
			declare := func() *gopf.Operator {
				return ownedBy(state, func(r *gopf.Reconciliation[*Example]) error {
					called.Add(1)
					name := r.Object.Name
					first := gopf.Want(r, configChild(name, r.Object.Spec.Field))
					gopf.Want(r, configChild(name+"-after", r.Object.Spec.Field), gopf.DependsOn(first))
					gopf.Want(r, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"a": "b"}})
					return nil
				}, gopf.Owns[*corev1.ConfigMap](), gopf.Owns[*corev1.Secret]())
			}
			for i := range owners {
				s.Create(examples, fmt.Sprint("x", i), spec("a"))
			}
			o := s.start(declare(), nil)
			for i := range owners {
				s.awaitValue(childMaps, fmt.Sprintf("x%d-after", i), "a", "data", "key")
				s.awaitValue(childSecrets, fmt.Sprint("x", i), "Yg==", "data", "a")
				s.waitFor(examples, fmt.Sprint("x", i), func(obj *unstructured.Unstructured) error {
					if !strings.Contains(fmt.Sprint(obj.GetAnnotations(), obj.Object["status"]), "-after/") {
						return errors.New("the inventory is not complete")
					}
					return nil
				})
			}
			time.Sleep(time.Second)
			o.Stop()
			before := called.Load()
			again := s.start(declare(), nil)
			kit.Await(t, "all handlers are called", func() bool { return called.Load() >= before+owners })
			time.Sleep(time.Second)
			if got := again.wire.lines(); len(got) > 0 {
				t.Errorf("a restart caused the writes %q", got)
			}
			if got := called.Load() - before; got != owners {
				t.Errorf("a restart caused %d calls for %d owners", got, owners)
			}
		})
	}
}

func TestChildrenAreAsDeclaredIfTheOperatorIsKilledAtAnyWrite(t *testing.T) {
	t.Parallel()
	declare := func(state string) *gopf.Operator {
		return ownedBy(state, func(r *gopf.Reconciliation[*Example]) error {
			first := gopf.Want(r, configChild("first", r.Object.Spec.Field))
			for _, item := range r.Object.Spec.Items {
				gopf.Want(r, configChild(item, r.Object.Spec.Field), gopf.DependsOn(first))
			}
			return nil
		}, gopf.Owns[*corev1.ConfigMap]())
	}
	for n := 1; n <= 12; n++ {
		state, fate := inAnnotations, killedAfter
		if n%2 == 0 {
			state = inStatus
		}
		if n%3 == 0 {
			fate = killedBefore
		}
		t.Run(fmt.Sprintf("%s write %d, state in %s", fate, n, state), func(t *testing.T) {
			t.Parallel()
			s := newSpace(t)
			counted := 0
			o := s.start(declare(state), func(_ int, w write) mishap {
				if strings.Contains(w.what, " events") {
					return ""
				}
				if counted++; counted == n {
					return fate
				}
				return ""
			})
			wires := []*wire{o.wire}
			await := func(what string, holds func() bool) {
				t.Helper()
				kit.Await(t, what, func() bool {
					if len(wires) == 1 && o.wire.isDead() {
						o.Stop()
						wires = append(wires, s.start(declare(state), nil).wire)
					}
					return holds()
				})
			}
			has := func(want ...string) func() bool {
				return func() bool {
					var got []string
					for _, name := range []string{"first", "one", "two"} {
						if c := s.Get(childMaps, name); c != nil {
							v, _, _ := unstructured.NestedString(c.Object, "data", "key")
							got = append(got, name+"="+v)
						}
					}
					return slices.Equal(got, want)
				}
			}
			s.Create(examples, "x", fields{"spec": fields{"field": "a", "items": []any{"one", "two"}}})
			await("the children exist", has("first=a", "one=a", "two=a"))
			s.Patch(examples, "x", fields{"spec": fields{"field": "b", "items": []any{"one"}}})
			await("the children are changed, and one is deleted", has("first=b", "one=b"))
			s.Delete(examples, "x")
			await("the object is gone with its children", func() bool { return has()() && s.Get(examples, "x") == nil })
			created := map[string]int{}
			for _, w := range wires {
				for _, one := range w.all() {
					if one.found == http.StatusCreated && strings.Contains(one.what, "configmaps/") {
						created[one.what]++
					}
				}
			}
			if len(created) != 3 || created["PATCH configmaps/first"] != 1 || created["PATCH configmaps/one"] != 1 || created["PATCH configmaps/two"] != 1 {
				t.Errorf("the children were created as %v, want each once", created)
			}
			if len(wires) == 1 && counted >= n {
				t.Errorf("the operator was not killed")
			}
		})
	}
}

func TestReconcileHandlersRunAloneAndChildrenWakeNoTimer(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	var busy, overlaps, reconciled, updates, ticks atomic.Int64
	alone := func() {
		if busy.Add(1) > 1 {
			overlaps.Add(1)
		}
		time.Sleep(30 * time.Millisecond)
		busy.Add(-1)
	}
	op := ownedBy(inAnnotations, func(r *gopf.Reconciliation[*Example]) error {
		reconciled.Add(1)
		alone()
		gopf.Want(r, configChild("config", r.Object.Spec.Field))
		return nil
	}, gopf.Owns[*corev1.ConfigMap](), gopf.Every(50*time.Millisecond))
	x := gopf.For[*Example](op, examples)
	x.OnUpdate("update", func(context.Context, *gopf.Change[*Example]) error { updates.Add(1); alone(); return nil })
	const interval = 2 * time.Second
	x.Timer("probe", interval, func(context.Context, *gopf.Tick[*Example]) error { ticks.Add(1); return nil }, gopf.Optional())
	s.start(op, nil)
	s.Create(examples, "x", spec("a"))
	s.awaitValue(childMaps, "config", "a", "data", "key")
	began, before := time.Now(), ticks.Load()
	calls := reconciled.Load()
	for i := range 40 {
		s.Patch(childMaps, "config", fields{"metadata": fields{"annotations": fields{"n": fmt.Sprint(i)}}})
		if i%4 == 0 {
			s.Patch(examples, "x", spec(fmt.Sprint(i)))
		}
		time.Sleep(100 * time.Millisecond)
	}
	kit.Await(t, "the last change is handled", func() bool { return updates.Load() > 0 && busy.Load() == 0 && reconciled.Load() > calls+5 })
	if got := overlaps.Load(); got > 0 {
		t.Errorf("%d calls overlapped with others of the same object", got)
	}
	most := int64(time.Since(began)/interval) + 2
	if got := ticks.Load() - before; got > most {
		t.Errorf("the timer was called %d times in %v", got, time.Since(began))
	}
}

func TestChildDeletedWhileTheWatchIsCutIsBackAfterTheRelist(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	o := s.start(ownedBy(inAnnotations, func(r *gopf.Reconciliation[*Example]) error {
		gopf.Want(r, configChild("config", r.Object.Spec.Field))
		return nil
	}, gopf.Owns[*corev1.ConfigMap]()), nil)
	s.Create(examples, "x", spec("a"))
	s.awaitValue(childMaps, "config", "a", "data", "key")
	o.following("configmaps")
	first := s.Get(childMaps, "config").GetUID()
	o.wire.cut("configmaps")
	s.Delete(childMaps, "config")
	s.waitGone(childMaps, "config")
	o.wire.mendByRelist()
	s.awaitValue(childMaps, "config", "a", "data", "key")
	if s.Get(childMaps, "config").GetUID() == first {
		t.Error("the child was not deleted")
	}
	if !o.wire.wasRelisted() {
		t.Error("the operator has not listed the children again, so the test proves nothing")
	}
}

func TestFieldsOfFormerManagersAreTakenOver(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	parent := s.Create(examples, "x", spec("a"))
	// The former version of the operator created its child without server-side apply.
	former := &unstructured.Unstructured{Object: fields{"apiVersion": "v1", "kind": "ConfigMap", "data": fields{"key": "old", "dropped": "b"}}}
	former.SetName("former")
	former.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: "handling.gopf.dev/v1", Kind: "Example", Name: "x", UID: parent.GetUID(), Controller: new(true),
	}})
	// Helm created an object that the operator adopts.
	shared := &unstructured.Unstructured{Object: fields{"apiVersion": "v1", "kind": "ConfigMap", "data": fields{"key": "a", "kept": "b"}}}
	shared.SetName("shared")
	for obj, manager := range map[*unstructured.Unstructured]string{former: "manager", shared: "helm"} {
		if _, err := s.Of(childMaps).Create(t.Context(), obj, metav1.CreateOptions{FieldManager: manager}); err != nil {
			t.Fatal(err)
		}
	}
	s.Patch(childMaps, "former", fields{"data": fields{"foreign": "c"}})
	o := s.start(ownedBy(inAnnotations, func(r *gopf.Reconciliation[*Example]) error {
		gopf.Want(r, configChild("former", r.Object.Spec.Field))
		shared := configChild("shared", r.Object.Spec.Field)
		if r.Object.Spec.Field == "b" {
			shared.Data = nil
		}
		gopf.Want(r, shared, gopf.AdoptExisting())
		return nil
	}, gopf.Owns[*corev1.ConfigMap]()), nil)
	data := func(name string) string {
		v, _, _ := unstructured.NestedStringMap(s.Get(childMaps, name).Object, "data")
		return fmt.Sprint(v)
	}
	kit.Await(t, "the fields are taken over", func() bool {
		return data("former") == "map[foreign:c key:a]" && s.Get(childMaps, "shared").GetLabels()["gopf.dev/children"] != ""
	})
	if got := data("shared"); got != "map[kept:b key:a]" && got != "map[key:a kept:b]" {
		t.Errorf("the adopted object has the data %s", got)
	}
	for _, e := range s.Get(childMaps, "former").GetManagedFields() {
		if e.Manager == "manager" {
			t.Errorf("the former manager still has fields: %s", e.FieldsV1)
		}
	}
	s.Patch(examples, "x", spec("b"))
	kit.Await(t, "a field that is no longer declared is gone from the adopted object", func() bool { return data("shared") == "map[kept:b]" })
	count := len(o.childWrites())
	time.Sleep(time.Second)
	if got := o.childWrites(); len(got) != count {
		t.Errorf("there were further writes: %q", got[count:])
	}
}

// cut breaks the watches of a resource. It cannot be listed or watched until
// mendByRelist.
func (w *wire) cut(plural string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.without = plural
	for body := range w.streams {
		if body.(*stream).of == plural {
			_ = body.(*stream).ReadCloser.Close()
			delete(w.streams, body)
		}
	}
}

// mendByRelist lets the requests pass again, but the next watch is told that its version is
// too old.
func (w *wire) mendByRelist() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expired, w.without = w.without, ""
}

func (w *wire) wasRelisted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.relisted
}

// disturbed returns the response to a read of a resource that is cut. nil means that the
// request must be sent.
func (w *wire) disturbed(r *http.Request, plural string) (*http.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.without == plural {
		return nil, errors.New("the connection is cut")
	}
	if w.expired != plural {
		return nil, nil
	}
	if query := r.URL.Query(); query.Get("watch") == "" || query.Get("sendInitialEvents") == "true" {
		w.expired, w.relisted = "", true
		return nil, nil
	}
	const body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","message":"too old resource version","code":410}`
	return &http.Response{
		Status: "410 Gone", StatusCode: http.StatusGone, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

// A client that may edit a child can change it and write the former managedFields back.
func TestHiddenChangesOfChildrenAreRepaired(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	o := s.start(declareChildren(inAnnotations, false), nil)
	s.Create(examples, "x", spec("a"))
	s.awaitValue(childMaps, "config", "a", "data", "key")
	s.awaitValue(childDeployments, "web", "1", "spec", "replicas")
	time.Sleep(time.Second)
	o.Stop()
	hide := func(resource, name string, change fields) {
		former := s.Get(resource, name).Object["metadata"].(map[string]any)["managedFields"]
		s.Patch(resource, name, change)
		s.Patch(resource, name, fields{"metadata": fields{"managedFields": former}})
	}
	hide(childMaps, "config", fields{"data": fields{"key": "hidden"}})
	hide(childDeployments, "web", fields{"spec": fields{"replicas": int64(5)}})
	again := s.start(declareChildren(inAnnotations, false), nil)
	s.awaitValue(childMaps, "config", "a", "data", "key")
	s.awaitValue(childDeployments, "web", "1", "spec", "replicas")
	time.Sleep(2 * time.Second)
	if got := again.childWrites(); len(got) != 2 {
		t.Errorf("the repairs caused the writes %q, want 2", got)
	}
}
