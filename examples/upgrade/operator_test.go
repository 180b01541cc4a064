package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf/gopftest"
)

const (
	clusters = "gopf.dev/v1/dbclusters"
	sets     = "apps/v1/statefulsets"
	jobs     = "batch/v1/jobs"
	settings = "v1/configmaps"
)

func TestTheDeclarationsAreValid(t *testing.T) {
	if err := newOperator().Err(); err != nil {
		t.Error(err)
	}
}

func newCluster(t testing.TB) *gopftest.Cluster {
	c := gopftest.NewCluster(t, sets, jobs, settings)
	c.Load(t, "deploy/crd.yaml")
	return c
}

// at returns a value of an object as text.
func at(o *unstructured.Unstructured, path ...string) string {
	text, _, _ := unstructured.NestedString(o.Object, path...)
	return text
}

func imageOf(o *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	return containers[0].(map[string]any)["image"].(string)
}

// start creates a database cluster and asks for another version of it.
func start(t testing.TB, c *gopftest.Cluster) {
	c.Load(t, "obj.yaml")
	c.Wait(t, clusters, "default", "orders", func(o *unstructured.Unstructured) bool { return at(o, "status", "version") == "1.0" })
	time.Sleep(time.Minute)
	c.Patch(t, clusters, "default", "orders", `{"spec":{"version":"2.0"}}`)
	c.Wait(t, jobs, "default", "orders-before-2-0", func(*unstructured.Unstructured) bool { return true })
	time.Sleep(time.Second) // every run must make the same writes
	if on := at(c.Get(t, settings, "default", "orders"), "data", "readOnly"); on != "true" {
		t.Errorf("the snapshot begins while the members accept writes: readOnly is %q", on)
	}
}

// end waits for the end of the upgrade, and checks that the members accept writes again.
func end(t testing.TB, c *gopftest.Cluster, message string) {
	c.Wait(t, clusters, "default", "orders", func(o *unstructured.Unstructured) bool {
		return strings.Contains(at(o, "status", "message"), message)
	})
	time.Sleep(10 * time.Minute)
	if on := at(c.Get(t, settings, "default", "orders"), "data", "readOnly"); on != "false" {
		t.Errorf("readOnly is %q", on)
	}
	if n := len(c.List(t, jobs, "default")); n != 1 {
		t.Errorf("%d snapshots", n)
	}
}

func TestTheUpgradeSurvivesCrashes(t *testing.T) {
	gopftest.CrashAtEveryWrite(t, gopftest.Life{Cluster: newCluster, Operator: newOperator, Live: func(t testing.TB, c *gopftest.Cluster) {
		start(t, c)
		if got := imageOf(c.Get(t, sets, "default", "orders")); got != "example.com/db:1.0" {
			t.Errorf("before the snapshot, the members run %s", got)
		}
		c.PatchStatus(t, jobs, "default", "orders-before-2-0", `{"status":{"succeeded":1}}`)
		set := c.Wait(t, sets, "default", "orders", func(o *unstructured.Unstructured) bool { return imageOf(o) == "example.com/db:2.0" })
		time.Sleep(time.Second)
		c.PatchStatus(t, sets, "default", "orders", map[string]any{"status": map[string]any{
			"observedGeneration": set.GetGeneration(), "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3,
		}})
		end(t, c, "Upgraded.")
		if got := at(c.Get(t, clusters, "default", "orders"), "status", "version"); got != "2.0" {
			t.Errorf("the status has the version %q", got)
		}
	}})
}

// After a failed snapshot, the members keep their version, and are unlocked.
func TestAFailedSnapshotEndsTheUpgrade(t *testing.T) {
	gopftest.CrashAtEveryWrite(t, gopftest.Life{Cluster: newCluster, Operator: newOperator, Live: func(t testing.TB, c *gopftest.Cluster) {
		start(t, c)
		c.PatchStatus(t, jobs, "default", "orders-before-2-0", `{"status":{"conditions":[{"type":"Failed","status":"True","message":"the disk is full"}]}}`)
		end(t, c, "failed")
		if got := imageOf(c.Get(t, sets, "default", "orders")); got != "example.com/db:1.0" {
			t.Errorf("after a failed snapshot, the members run %s", got)
		}
		if got := at(c.Get(t, clusters, "default", "orders"), "status", "version"); got != "1.0" {
			t.Errorf("the status has the version %q", got)
		}
	}})
}

// The version changes after the members were created, and before the creation is handled.
func TestAVersionThatChangesDuringTheCreationIsNotMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.Fault(gopftest.Requests("create", "statefulsets"), gopftest.After(func(gopftest.Request) {
			c.Patch(t, clusters, "default", "orders", `{"spec":{"version":"2.0"}}`)
		}))
		gopftest.Start(t, newOperator(), c)
		c.Load(t, "obj.yaml")
		c.Wait(t, jobs, "default", "orders-before-2-0", func(o *unstructured.Unstructured) bool { return imageOf(o) == "example.com/db:1.0" })
		if got := at(c.Get(t, clusters, "default", "orders"), "status", "version"); got != "1.0" {
			t.Errorf("the status has the version %q", got)
		}
	})
}
