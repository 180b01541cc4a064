package metacontroller

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A tenant may create ControllerRevisions in its namespace.
func TestManyRevisionsOfAParentCauseFewCallsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls, now, most atomic.Int32
		c := newStage(t, Options{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			calls.Add(1)
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(100 * time.Millisecond)
			now.Add(-1)
			return respond(r, nil, map[string]any{"body": map[string]any{}}), nil
		})})
		c.Create(t, thing())
		for i := range 20 {
			o := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": Group + "/" + Version, "kind": "ControllerRevision", "parentPatch": map[string]any{"spec": map[string]any{"v": int64(i)}},
			}}
			o.SetNamespace("default")
			o.SetName(fmt.Sprint("revision-", i))
			o.SetLabels(map[string]string{"app": "p", groupLabel: "ctl.example.com", resourceLabel: "things"})
			c.Create(t, o)
		}
		child := map[string]any{"apiVersion": "ctl.example.com/v1", "resource": "leaves", "updateStrategy": map[string]any{"method": RollingInPlace}}
		c.Create(t, controllerOf("http://hooks.test", child))
		time.Sleep(10 * time.Second)
		if calls.Load() < 21 || most.Load() > parallelForms {
			t.Errorf("%d calls, of which %d at a time; want 21 or more, and at most %d", calls.Load(), most.Load(), parallelForms)
		}
	})
}

func TestAResponseForAnOlderRevisionKeepsOnlyItsChildren(t *testing.T) {
	revision := &unstructured.Unstructured{Object: map[string]any{}}
	setMembers(revision, []Member{{"ctl.example.com", "Leaf", "leaf-1"}})
	f := form{object: revision, response: &CompositeHookResponse{Children: leavesOf(100), Status: map[string]any{"a": "b"}}}
	f.trim()
	if len(f.response.Children) != 1 || f.response.Children[0].GetName() != "leaf-1" || f.response.Status != nil {
		t.Errorf("got %+v", f.response)
	}
}
