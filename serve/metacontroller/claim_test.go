package metacontroller

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf/gopftest"
)

// A tenant has objects that a cluster-scoped parent selects, and no write of them succeeds.
func TestAnOrphanThatCannotBeAdoptedStopsNoSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hook := &answering{body: map[string]any{"children": []any{leafIn("tenant", "good", "new").Object}, "status": map[string]any{"done": true}}}
		c := newStage(t, Options{Transport: hook})
		c.CreateNamespace(t, "attacker")
		c.CreateNamespace(t, "tenant")
		for i := range 3 * mostFailedClaims {
			c.Create(t, leafIn("attacker", fmt.Sprint("bad-", i), "old"))
		}
		refused := c.Fault(gopftest.Requests("update", "leaves").Where(func(r gopftest.Request) bool { return r.Namespace == "attacker" }), gopftest.Fail(403))
		parent := thing()
		parent.SetKind("ClusterThing")
		parent.SetNamespace("")
		c.Create(t, parent)
		ctl := controllerOf("http://hooks.test", map[string]any{"apiVersion": "ctl.example.com/v1", "resource": "leaves"})
		ctl.Object["spec"].(map[string]any)["parentResource"].(map[string]any)["resource"] = "clusterthings"
		before := len(c.Requests())
		c.Create(t, ctl)
		time.Sleep(10 * time.Second)
		if _, exists := c.Lookup(t, leaves, "tenant", "good"); !exists {
			t.Error("the child of another tenant was not created")
		}
		if got := c.Get(t, "ctl.example.com/v1/clusterthings", "", "p"); scalar(got, "status", "done") != "true" {
			t.Errorf("the parent is %v", got.Object)
		}
		if !complains(t, c, "can't adopt Leaf attacker/bad-") {
			t.Error("there is no event about the orphan")
		}
		tried := 0
		for _, r := range c.Requests()[before:] {
			if r.Verb == "update" && strings.HasPrefix(r.Name, "bad-") {
				tried++
			}
		}
		if calls := int(hook.calls.Load()); tried == 0 || tried > mostFailedClaims*calls {
			t.Errorf("%d attempts in %d syncs", tried, calls)
		}
		refused.Stop()
	})
}
