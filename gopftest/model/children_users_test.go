package model_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var discard = slog.New(slog.DiscardHandler)

// ledger has what users have done, as far as the checks need it.
type ledger struct {
	problems []string
	foreign  map[string]string // the resource versions of objects of users, by namespace and name
	edits    map[string]edit   // fields that users added to children, by namespace and name
	scaled   map[string]edit   // values of users in fields that belong to them, by namespace and name
}

// edit is a value in exactly one object.
type edit struct{ uid, value string }

func newLedger() ledger {
	return ledger{foreign: map[string]string{}, edits: map[string]edit{}, scaled: map[string]edit{}}
}

func (f *family) wrong(format string, args ...any) {
	f.ledger.problems = append(f.ledger.problems, fmt.Sprintf(format, args...))
	f.note("WRONG: "+format, args...)
}

// request sends a request of a user, and returns the object in the response. nil means
// that it failed, for example because the object is gone.
func (f *family) request(method, path, contentType string, body any) *unstructured.Unstructured {
	raw, err := json.Marshal(body)
	if err != nil {
		f.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(f.t.Context(), method, "http://cluster"+path, bytes.NewReader(raw))
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("User-Agent", "kubectl/1")
	resp, err := f.cluster.Transport().RoundTrip(r)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	obj := &unstructured.Unstructured{}
	if resp.StatusCode >= 300 || json.NewDecoder(resp.Body).Decode(&obj.Object) != nil {
		return nil
	}
	return obj
}

func parentPath(name string) string {
	return "/apis/model.gopf.dev/v1/namespaces/default/parents/" + name
}

func childPath(namespace, name string) string {
	return "/api/v1/namespaces/" + namespace + "/configmaps/" + name
}

func (f *family) merge(path string, patch map[string]any) *unstructured.Unstructured {
	return f.request(http.MethodPatch, path, "application/merge-patch+json", patch)
}

// randomKids returns the children of a parent. Their names are distinct among parents.
func (f *family) randomKids(parent string) (all []kid) {
	r := f.rand
	for i := range r.IntN(5) {
		if chance(r, 20) {
			continue
		}
		// The options of a child depend only on its name: they do not change.
		k := kid{
			Name: fmt.Sprint(parent, "-", i), Value: pick(r, []string{"a", "b", "c"}),
			Away: i == 1, Once: i == 2, Last: i == 3, Group: i == 0 || i == 4, Initial: i == 4,
		}
		if len(all) > 0 && chance(r, 40) {
			k.Needs = all[len(all)-1].Name
		}
		all = append(all, k)
	}
	return all
}

// use does something that users do.
func (f *family) use() {
	r := f.rand
	name := pick(r, f.names)
	parent, exists := f.cluster.Lookup(f.t, parentKind, "default", name)
	switch {
	case !exists:
		kids := f.randomKids(name)
		f.note("create %s %+v", name, kids)
		f.request(http.MethodPost, strings.TrimSuffix(parentPath(""), "/"), "application/json", map[string]any{
			"apiVersion": "model.gopf.dev/v1", "kind": "Parent", "metadata": map[string]any{"name": name}, "spec": map[string]any{"children": kids},
		})
	case chance(r, 8) && !f.stripped[name]: // without an inventory, it needs a call first
		f.note("delete %s", name)
		f.request(http.MethodDelete, parentPath(name), "application/json", map[string]any{})
	case chance(r, 40):
		kids := f.randomKids(name)
		f.note("change %s %+v", name, kids)
		f.merge(parentPath(name), map[string]any{"spec": map[string]any{"children": kids}})
	case chance(r, 8) && !f.unlabelled[name]: // without both, nothing tells which children it has
		f.note("strip the state of %s", name)
		f.stripped[name] = true
		f.strip(parent)
	case chance(r, 15):
		f.meddle(parent)
	default:
		f.touch(parent)
	}
}

// touch changes or deletes a child of the parent.
func (f *family) touch(parent *unstructured.Unstructured) {
	kids := f.kidsOf(parent)
	if len(kids) == 0 {
		return
	}
	k := pick(f.rand, kids)
	path, at := childPath(k.namespace(), k.Name), k.namespace()+"/"+k.Name
	value := fmt.Sprint("user-", f.rand.IntN(1000))
	switch n := f.rand.IntN(5); {
	case n == 0:
		f.note("delete the child %s", at)
		f.request(http.MethodDelete, path, "application/json", map[string]any{})
	case n == 1 && !f.stripped[parent.GetName()]:
		f.unlabelled[parent.GetName()] = true
		f.note("remove the label of the child %s", at)
		f.merge(path, map[string]any{"metadata": map[string]any{"labels": map[string]any{"gopf.dev/children": nil}}})
	case n == 2:
		f.note("add a field to the child %s: %s", at, value)
		if o := f.merge(path, map[string]any{"data": map[string]any{"foreign": value}}); o != nil {
			f.ledger.edits[at] = edit{string(o.GetUID()), value}
		}
	default:
		f.note("change the child %s: %s", at, value)
		if o := f.merge(path, map[string]any{"data": map[string]any{"value": value}}); o != nil && k.Initial {
			f.ledger.scaled[at] = edit{string(o.GetUID()), value}
		}
	}
}

// meddle creates an object that looks like a child: with the labels, and sometimes with the
// owner reference of one.
func (f *family) meddle(parent *unstructured.Unstructured) {
	name := fmt.Sprint("foreign-", f.rand.IntN(3))
	metadata := map[string]any{"name": name, "labels": map[string]any{"gopf.dev/children": owner}}
	if chance(f.rand, 30) {
		metadata["ownerReferences"] = []any{map[string]any{
			"apiVersion": "model.gopf.dev/v1", "kind": "Parent", "name": parent.GetName(), "uid": string(parent.GetUID()), "controller": true,
		}}
		name = parent.GetName() + "-" + name // it is deleted with the parent
		metadata["name"] = name
	}
	o := f.request(http.MethodPost, "/api/v1/namespaces/default/configmaps", "application/json", map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": map[string]any{"value": "foreign"},
	})
	if o != nil {
		f.note("create the foreign object %s with %d owners", name, len(o.GetOwnerReferences()))
		f.ledger.foreign[name] = o.GetResourceVersion()
	}
}

// strip removes the state of the operator from an object.
func (f *family) strip(parent *unstructured.Unstructured) {
	annotations := map[string]any{}
	for key := range parent.GetAnnotations() {
		annotations[key] = nil
	}
	f.merge(parentPath(parent.GetName()), map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if f.status {
		f.merge(parentPath(parent.GetName())+"/status", map[string]any{"status": map[string]any{stateKey: nil}})
	}
}

func (f *family) kidsOf(parent *unstructured.Unstructured) []kid {
	raw, err := json.Marshal(parent.Object)
	if err != nil {
		f.t.Fatal(err)
	}
	var p Parent
	if err := json.Unmarshal(raw, &p); err != nil {
		f.t.Fatal(err)
	}
	return p.Spec.Children
}

// writes returns the number of writes of the operator so far.
func (f *family) writes() int { return len(f.ownWrites()) }

func (f *family) ownWrites() (all []string) {
	for _, r := range f.cluster.Writes() {
		if r.Header.Get(processHeader) != "" && r.Resource != "events" {
			all = append(all, fmt.Sprintf("%s %s/%s %d %s", r.Verb, r.Resource, r.Name, r.Code, cutText(string(r.Body), 300)))
		}
	}
	return all
}

func (f *family) checkWrites(who string, before int) {
	if all := f.ownWrites(); len(all) > before {
		f.wrong("%s writes: %s", who, strings.Join(all[before:min(len(all), before+5)], "\n    "))
	}
}

// check compares the children with the declared ones. It is the oracle.
func (f *family) check(when string) {
	wanted := map[string]bool{}
	for _, name := range f.names {
		parent, exists := f.cluster.Lookup(f.t, parentKind, "default", name)
		if !exists {
			continue
		}
		if parent.GetDeletionTimestamp() != nil {
			f.wrong("%s: %s is still being deleted", when, name)
		}
		f.checkPlace(when, parent)
		for _, k := range f.kidsOf(parent) {
			at := k.namespace() + "/" + k.Name
			wanted[at] = true
			child, exists := f.cluster.Lookup(f.t, childKind, k.namespace(), k.Name)
			if !exists {
				f.wrong("%s: the child %s does not exist", when, at)
				continue
			}
			f.checkChild(when, at, k, parent, child)
		}
	}
	for _, namespace := range []string{"default", elsewhere} {
		for _, o := range f.cluster.List(f.t, childKind, namespace) {
			at := namespace + "/" + o.GetName()
			if _, foreign := f.ledger.foreign[o.GetName()]; !foreign && !wanted[at] && strings.Contains(o.GetName(), "-") {
				f.wrong("%s: %s exists, but is not declared", when, at)
			}
		}
	}
	for name, version := range f.ledger.foreign {
		o, exists := f.cluster.Lookup(f.t, childKind, "default", name)
		switch {
		case !exists && strings.HasPrefix(name, "foreign-"):
			f.wrong("%s: the foreign object %s was deleted", when, name)
		case !exists: // it was deleted with its owner, which users deleted
			delete(f.ledger.foreign, name)
		case o.GetResourceVersion() != version:
			f.wrong("%s: the foreign object %s was changed: %v", when, name, o.Object)
		}
	}
}

func (f *family) checkChild(when, at string, k kid, parent, child *unstructured.Unstructured) {
	data, _, _ := unstructured.NestedStringMap(child.Object, "data")
	owned := strings.HasSuffix(child.GetAnnotations()["gopf.dev/owner"], string(parent.GetUID()))
	if reference := metav1.GetControllerOf(child); reference != nil {
		owned = reference.UID == parent.GetUID()
	}
	switch {
	case !owned:
		f.wrong("%s: the child %s does not belong to its parent: %v", when, at, child.Object["metadata"])
	case !k.Once && child.GetLabels()["gopf.dev/children"] != owner:
		f.wrong("%s: the child %s has the labels %v", when, at, child.GetLabels())
	case !k.Once && !k.Initial && data["value"] != k.Value, !k.Once && data["fixed"] != "yes":
		f.wrong("%s: the child %s has the data %v, want %q", when, at, data, k.Value)
	}
	if e, ok := f.ledger.edits[at]; ok && e.uid == string(child.GetUID()) && data["foreign"] != e.value {
		f.wrong("%s: the child %s has lost the field of a user: %v", when, at, data)
	}
	if e, ok := f.ledger.scaled[at]; ok && e.uid == string(child.GetUID()) && data["value"] != e.value {
		f.wrong("%s: the child %s has the value %q, want that of the user: %q", when, at, data["value"], e.value)
	}
	if slices.Contains(child.GetFinalizers(), "") {
		f.wrong("%s: the child %s has finalizers", when, at)
	}
}
