package model_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"gopf.dev/gopf/gopftest"
)

// action is something that happens in the world.
type action struct {
	after time.Duration // since the one before
	text  string
	do    func(*world)
}

// users plan what they do to a few objects. The plan depends on nothing that
// happens later.
type users struct {
	rand    *rand.Rand
	theme   theme
	names   []string
	slots   int      // processes that run at the same time
	fields  []string // of the spec
	present map[string]bool
	past    map[string][]content // what each object was like, oldest first
}

func newUsers(r *rand.Rand, th theme, names ...string) *users {
	return &users{rand: r, slots: 1, theme: th, names: names, fields: chosen(r), present: map[string]bool{}, past: map[string][]content{}}
}

// next plans one action on one object.
func (u *users) next() action {
	name := pick(u.rand, u.names)
	if !u.present[name] {
		return u.create(name)
	}
	if chance(u.rand, u.theme.del) {
		u.present[name] = false
		return action{text: "delete " + name, do: func(w *world) { w.delete(name) }}
	}
	return u.change(name)
}

func (u *users) create(name string) action {
	u.present[name] = true
	c := randomContent(u.rand, u.fields)
	held := chance(u.rand, 10)
	u.past[name] = []content{c}
	return action{text: fmt.Sprintf("create %s %s held=%v", name, c, held), do: func(w *world) { w.create(name, c, held) }}
}

// change plans a change of an object, often to what it was before.
func (u *users) change(name string) action {
	past := u.past[name]
	now := past[len(past)-1]
	verb := "change"
	var c content
	switch n := u.rand.IntN(100); {
	case n < u.theme.back && len(past) > 1:
		verb, c = "take back", past[len(past)-2]
	case n < u.theme.back+u.theme.relabel:
		verb, c = "relabel", now.relabeled(u.rand)
	default:
		c = now.changed(u.rand, u.fields)
	}
	u.past[name] = append(past, c)
	return action{text: fmt.Sprintf("%s %s %s", verb, name, c), do: func(w *world) { w.change(name, c) }}
}

// hold is a finalizer of users.
const hold = "example.com/hold"

// things is the path of the objects of a namespace.
func things(namespace string) string {
	return "/apis/model.dev/v1/namespaces/" + namespace + "/things"
}

// locate finds the namespace in the name of an object, which is "default" if
// there is none.
func locate(name string) (namespace, short string) {
	if namespace, short, found := strings.Cut(name, "/"); found {
		return namespace, short
	}
	return "default", name
}

func pathOf(name string) string {
	namespace, short := locate(name)
	return things(namespace) + "/" + short
}

func (w *world) create(name string, c content, held bool) {
	obj := c.patch()
	spec := obj["spec"].(map[string]any)
	for f, v := range spec {
		if v == nil {
			delete(spec, f)
		}
	}
	metadata := asMap(obj["metadata"])
	namespace, short := locate(name)
	metadata["name"] = short
	metadata["labels"] = without(asMap(metadata["labels"]), func(k string) bool { return asMap(metadata["labels"])[k] == nil })
	metadata["annotations"] = c.annotations
	if held {
		metadata["finalizers"] = []string{hold}
	}
	obj["apiVersion"], obj["kind"] = "model.dev/v1", "Thing"
	w.request(http.MethodPost, things(namespace), obj)
}

func (w *world) change(name string, c content) {
	w.request(http.MethodPatch, pathOf(name), c.patch())
}

func (w *world) delete(name string) { w.request(http.MethodDelete, pathOf(name), nil) }

// release removes the finalizers of users from an object.
func (w *world) release(name string) {
	namespace, short := locate(name)
	if !w.isDefined() {
		return
	}
	obj, there := w.cluster.Lookup(w.t, resource, namespace, short)
	if !there {
		return
	}
	kept := []string{}
	for _, f := range obj.GetFinalizers() {
		if f != hold {
			kept = append(kept, f)
		}
	}
	w.request(http.MethodPatch, pathOf(name), map[string]any{
		"metadata": map[string]any{"finalizers": kept, "resourceVersion": obj.GetResourceVersion()},
	})
}

// request sends a request of a user, which no fault strikes, and tells the oracle.
// That an object, or its kind or namespace, does or does not exist is no failure.
func (w *world) request(method, path string, body any) {
	var text []byte
	if body != nil {
		text, _ = json.Marshal(body)
	}
	r, err := http.NewRequest(method, "https://cluster.test"+path, bytes.NewReader(text))
	if err != nil {
		w.oracle.wrong("a user's request: %v", err)
		return
	}
	r.Header.Set("User-Agent", "user")
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resp, err := w.cluster.Transport().RoundTrip(r)
	if err != nil {
		w.oracle.wrong("%s %s by a user: %v", method, path, err)
		return
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	switch {
	case resp.StatusCode < 300:
		w.oracle.userWrote(method, answer)
	case !slices.Contains([]int{http.StatusNotFound, http.StatusConflict, http.StatusForbidden, http.StatusMethodNotAllowed}, resp.StatusCode):
		w.oracle.wrong("%s %s by a user: %s", method, path, answer)
	}
}

// ofOperator chooses requests of processes of the operator.
func ofOperator(r gopftest.Request) bool { return r.Header.Get(processHeader) != "" }
