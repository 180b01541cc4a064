package e2e

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/test/e2e/kit"
)

// The snapshot fails, so that the members keep their version and accept writes again.
func TestTheUpgradeEndsWithAFailedSnapshot(t *testing.T) {
	t.Parallel()
	const folder = "../../../examples/upgrade"
	apply(t, folder+"/deploy/crd.yaml")
	ns := namespace(t)
	in := func(kind, group, plural string) objects {
		return objects{t, ns, kind, schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural}}
	}
	clusters, jobs := in("DBCluster", "gopf.dev", "dbclusters"), in("Job", "batch", "jobs")
	settings, sets := in("ConfigMap", "", "configmaps"), in("StatefulSet", "apps", "statefulsets")
	p := start(t, build(t, folder), nil, "run", "--namespace", ns, "--standalone", "--verbose")
	clusters.create("orders", map[string]any{"spec": map[string]any{"version": "1.0"}})
	kit.Await(t, "the cluster has its version", func() bool { return field(clusters.get("orders"), "status", "version") == "1.0" })

	clusters.merge("orders", `{"spec": {"version": "2.0"}}`)
	kit.Await(t, "the snapshot is taken", func() bool { return jobs.get("orders-before-2-0") != nil })
	if got := field(settings.get("orders"), "data", "readOnly"); got != "true" {
		t.Errorf("during the snapshot, readOnly is %q", got)
	}
	jobs.merge("orders-before-2-0", `{"spec": {"activeDeadlineSeconds": 1}}`) // there are no nodes: it misses every deadline
	kit.Await(t, "the status has the failure", func() bool {
		return strings.Contains(field(clusters.get("orders"), "status", "message"), "The upgrade to 2.0 failed")
	})
	p.Log.WaitFor(t, "[ERROR", "'upgrade/spec.version/snapshot' failed permanently: the snapshot failed: Job was active longer than specified deadline")
	if got := field(settings.get("orders"), "data", "readOnly"); got != "false" {
		t.Errorf("after the upgrade, readOnly is %q", got)
	}
	if got := field(clusters.get("orders"), "status", "version"); got != "1.0" {
		t.Errorf("status.version is %q", got)
	}
	if generation := sets.get("orders").GetGeneration(); generation != 1 {
		t.Errorf("the members were changed: generation %d", generation)
	}
	p.end(t)
}
