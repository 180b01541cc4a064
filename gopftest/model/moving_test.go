package model_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

const definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things." + group

// TestKindsAndNamespacesComeAndGo deletes and recreates the definition of the kind and
// namespaces, while users continue.
func TestKindsAndNamespacesComeAndGo(t *testing.T) {
	forSeeds(t, 15, func(t *testing.T, r *rand.Rand) *world {
		th := pick(r, themes)
		d := randomDeclaration(r, th)
		d.scanning = true
		w := newWorld(t, d, randomEnvironment(r))
		if chance(r, 50) {
			w.runOptions = []gopf.RunOption{gopf.Namespaces("default", "app-*")}
		}
		w.moving = true
		w.restore()
		plan := randomPlan(r, th, newUsers(r, th, "x0", "app-0/x1", "app-1/x2"))
		for i := range plan {
			for range 1 + r.IntN(2) {
				at := r.IntN(len(plan[i]) + 1)
				plan[i] = append(plan[i][:at:at], append([]action{randomMove(r)}, plan[i][at:]...)...)
			}
		}
		w.supervise(1)
		quiet(time.Second)
		w.perform(plan)
		w.finish()
		return w
	})
}

// randomMove deletes or creates a kind or a namespace.
func randomMove(r *rand.Rand) action {
	name := fmt.Sprint("app-", r.IntN(2))
	a := pick(r, []action{
		{text: "delete the definition", do: func(w *world) { w.undefine() }},
		{text: "create the definition", do: func(w *world) { w.define() }},
		{text: "delete the namespace " + name, do: func(w *world) { w.leave(name) }},
		{text: "create the namespace " + name, do: func(w *world) { w.enter(name) }},
	})
	a.after = pick(r, []time.Duration{0, time.Second, 20 * time.Second, time.Minute})
	return a
}

// isDefined reports whether the kind exists, even if it is being deleted.
func (w *world) isDefined() bool {
	_, there := w.cluster.Lookup(w.t, "customresourcedefinitions", "", "things."+group)
	return there
}

func (w *world) define() {
	if !w.isDefined() {
		w.cluster.Define(w.t, w.kind())
	}
}

func (w *world) kind() gopftest.Kind {
	return gopftest.Kind{Group: group, Version: "v1", Plural: "things", Kind: "Thing", Namespaced: true, StatusSubresource: w.declaration.statusSub}
}

func (w *world) undefine() {
	if w.isDefined() {
		w.doom("")
		w.request(http.MethodDelete, definition, nil)
	}
}

func (w *world) enter(namespace string) {
	if _, there := w.cluster.Lookup(w.t, "namespaces", "", namespace); !there {
		w.cluster.CreateNamespace(w.t, namespace)
	}
}

func (w *world) leave(namespace string) {
	w.doom(namespace)
	w.request(http.MethodDelete, "/api/v1/namespaces/"+namespace, nil)
}

// doom tells the oracle that the objects of a namespace, or all objects, are deleted.
func (w *world) doom(namespace string) {
	if !w.isDefined() {
		return
	}
	for _, obj := range w.cluster.List(w.t, resource, namespace) {
		w.release(obj.GetNamespace() + "/" + obj.GetName())
	}
	for _, obj := range w.cluster.List(w.t, resource, namespace) {
		w.oracle.doomed(obj)
	}
}

// restore waits until the deletion is complete, and creates the kind or namespace again.
func (w *world) restore() {
	if crd, there := w.cluster.Lookup(w.t, "customresourcedefinitions", "", "things."+group); there && crd.GetDeletionTimestamp() != nil {
		w.oracle.wrong("the definition is still there; its objects are %v", w.cluster.List(w.t, resource, ""))
	}
	w.define()
	for _, name := range []string{"app-0", "app-1"} {
		if ns, there := w.cluster.Lookup(w.t, "namespaces", "", name); there && ns.GetDeletionTimestamp() != nil {
			w.oracle.wrong("the namespace %s is still there; its objects are %v", name, w.cluster.List(w.t, resource, name))
		}
		w.enter(name)
	}
}
