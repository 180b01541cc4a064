package metacontroller

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// leavesOf returns n children. The last one has the name of the first.
func leavesOf(n int) (list []*unstructured.Unstructured) {
	for i := range n {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "ctl.example.com/v1", "kind": "Leaf", "place": int64(i)}}
		o.SetName(fmt.Sprint("leaf-", i%(n-1)))
		o.SetLabels(map[string]string{"app": "p"})
		list = append(list, o)
	}
	return list
}

func TestManyChildrenArePreparedInLinearTime(t *testing.T) {
	const n = 30_000
	began := time.Now()
	list := Desired(thing(), leavesOf(n), true, "d")
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	if len(list) != n-1 || list[0].Object["place"] != int64(n-1) || list[1].Object["place"] != int64(1) || list[0].GetNamespace() != "default" {
		t.Errorf("got %d children, the first ones are %v and %v", len(list), list[0].Object, list[1].Object)
	}
}

func TestALongRolloutTakesLinearTime(t *testing.T) {
	const n = 30_000
	var all []Member
	latest, older := leavesOf(n)[:n-1], leavesOf(n)[:n-1]
	for _, o := range latest {
		all = append(all, Member{"ctl.example.com", "Leaf", o.GetName()})
	}
	began := time.Now()
	members, rest, desired, _ := Roll(Rollout{
		Latest: Revision{Desired: latest}, Older: []Revision{{Members: all, Desired: older}},
		Rolling: func(*unstructured.Unstructured) *UpdateStrategy { return &UpdateStrategy{Method: RollingInPlace} },
		Observe: func(*unstructured.Unstructured) *unstructured.Unstructured { return nil },
		Member:  func(o *unstructured.Unstructured) Member { return Member{"ctl.example.com", "Leaf", o.GetName()} },
	})
	if !sameMembers(rest[0], all[1:]) {
		t.Errorf("%d children are left", len(rest[0]))
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	if len(members) != 1 || desired[0] != latest[0] || desired[1] != older[1] {
		t.Errorf("moved %v", members)
	}
}

// The objects of a tenant decide how many children a hook returns.
func TestAResponseWithTooManyChildrenOrValuesIsRefused(t *testing.T) {
	items := func(item string, n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
	}
	const leaf = `{"apiVersion":"ctl.example.com/v1","kind":"Leaf","metadata":{"name":"a"}}`
	for body, want := range map[string]string{
		`{"children":` + items(leaf, mostItems) + `}`:   "",
		`{"children":` + items(leaf, mostItems+1) + `}`: "the response has 5001 children, and the limit is 5000",
		`{"status":{"a":` + items("[]", 300_000) + `}}`: "the response of the hook is too large: it has more than 262144 values",
	} {
		err := Decode([]byte(body), &CompositeHookResponse{}, "sync", V1, false)
		if got := fmt.Sprint(err); got != want && (want != "" || err != nil) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAParentWithTooManyChildrenHasAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newStage(t, Options{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			return respond(r, nil, map[string]any{"body": map[string]any{"children": leavesOf(mostItems + 1)}}), nil
		})})
		c.Create(t, thing())
		c.Create(t, controllerOf("http://hooks.test", map[string]any{"apiVersion": "ctl.example.com/v1", "resource": "leaves"}))
		time.Sleep(time.Second)
		said := func(o *unstructured.Unstructured) bool {
			about, _, _ := unstructured.NestedString(o.Object, "involvedObject", "name")
			message, _, _ := unstructured.NestedString(o.Object, "message")
			return about == "p" && strings.Contains(message, "Thing default/p") && strings.HasSuffix(message, "the limit is 5000")
		}
		if !slices.ContainsFunc(c.List(t, "v1/events", "default"), said) {
			t.Error("there is no event about the limit")
		}
		if n := len(c.List(t, "ctl.example.com/v1/leaves", "default")); n > 0 {
			t.Errorf("%d children were created", n)
		}
	})
}
