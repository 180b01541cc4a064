package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"

	"gopf.dev/gopf/internal/dev/manifests"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

// databases is what a test of the operator for databases sees of the cluster.
type databases struct {
	*process
	of, sets, services, secrets, claims, jobs, pods objects
}

// startDatabases creates a Database and runs the operator with no more permissions
// than its manifests grant. before may be nil.
func startDatabases(t *testing.T, before func(databases)) databases {
	t.Helper()
	const folder = "../../../examples/database"
	apply(t, folder+"/deploy")
	ns := namespace(t)
	in := func(kind, group, plural string) objects {
		return objects{t, ns, kind, schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural}}
	}
	d := databases{
		of:       in("Database", "techoral.com", "databases"),
		sets:     in("StatefulSet", "apps", "statefulsets"),
		services: in("Service", "", "services"),
		secrets:  in("Secret", "", "secrets"),
		claims:   in("PersistentVolumeClaim", "", "persistentvolumeclaims"),
		jobs:     in("CronJob", "batch", "cronjobs"),
		pods:     in("Pod", "", "pods"),
	}
	manifest, err := manifests.Read(folder + "/database.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if before != nil {
		before(d)
	}
	object := manifest[1] // the first is its namespace; the test has one of its own
	object.SetNamespace(ns)
	d.of.create("orders-db", object.Object)
	as := "KUBECONFIG=" + impersonating(t, "system:serviceaccount:operators:database-operator")
	d.process = start(t, build(t, folder), []string{as}, "run", "--namespace", ns, "--standalone", "--verbose")
	return d
}

// impersonating writes a kubeconfig for the shared cluster and another user.
func impersonating(t *testing.T, user string) (path string) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, auth := range config.AuthInfos {
		auth.Impersonate = user
	}
	path = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// runPod does what a node does: there are none.
func (d databases) runPod(name string) {
	d.of.t.Helper()
	kit.Await(d.of.t, "there is the pod "+name, func() bool { return d.pods.get(name) != nil })
	d.pods.mergeStatus(name, `{"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}`)
}

// awaitState waits until the status of the database says so.
func (d databases) awaitState(state string) {
	d.of.t.Helper()
	kit.Await(d.of.t, "the database is "+state, func() bool { return field(d.of.get("orders-db"), "status", "state") == state })
}

// awaitRest waits until nothing is written anymore.
func (d databases) awaitRest() {
	d.of.t.Helper()
	version := func() string {
		return field(d.sets.get("orders-db-db"), "metadata", "resourceVersion") + field(d.of.get("orders-db"), "metadata", "resourceVersion")
	}
	kit.Await(d.of.t, "nothing is written", func() bool {
		earlier := version()
		time.Sleep(500 * time.Millisecond)
		return version() == earlier
	})
}

// conditions are their statuses by their types.
func (d databases) conditions() map[string]string {
	list, _, _ := unstructured.NestedSlice(d.of.get("orders-db").Object, "status", "conditions")
	found := map[string]string{}
	for _, condition := range list {
		c := condition.(map[string]any)
		found[c["type"].(string)] = c["status"].(string)
	}
	return found
}

func (d databases) replicas() int64 {
	set := d.sets.get("orders-db-db")
	if set == nil {
		return 0
	}
	n, _, _ := unstructured.NestedInt64(set.Object, "spec", "replicas")
	return n
}

func TestTheDatabaseOperator(t *testing.T) {
	t.Parallel()
	d := startDatabases(t, nil)

	// All its parts are made, and defaults of the definition count.
	d.awaitState("Provisioning")
	for _, part := range []struct {
		of   objects
		name string
	}{{d.sets, "orders-db-db"}, {d.services, "orders-db-db"}, {d.secrets, "orders-db-db"}, {d.claims, "orders-db-backups"}} {
		kit.Await(t, "there is the "+part.of.kind, func() bool { return part.of.get(part.name) != nil })
		owner := metav1.GetControllerOf(part.of.get(part.name))
		if owner == nil || owner.Kind != "Database" {
			t.Errorf("%s is owned by %v", part.of.kind, owner)
		}
	}
	made := d.of.get("orders-db")
	for name, want := range map[string]string{
		"engine": "postgresql", "version": "16", "endpoint": "orders-db-db." + d.of.namespace + ".svc.cluster.local:5432",
	} {
		if got := field(made, "status", name); got != want {
			t.Errorf("status.%s is %q, want %q", name, got, want)
		}
	}

	// The test is the node: some replicas become ready, then all.
	d.runPod("orders-db-db-0")
	d.awaitState("Degraded")
	if got := d.conditions(); got["Available"] != "True" || got["Ready"] != "False" {
		t.Errorf("conditions are %v", got)
	}
	d.runPod("orders-db-db-1")
	d.awaitState("Ready")
	kit.Await(t, "the conditions say so", func() bool { return d.conditions()["Available"] == "True" && d.conditions()["Ready"] == "True" })
	kit.Await(t, "there are backups of a ready database", func() bool { return d.jobs.get("orders-db-backup") != nil })

	// Backups are turned off and on; those that were made are kept.
	d.of.merge("orders-db", `{"spec": {"backupEnabled": false}}`)
	kit.Await(t, "there are no backups", func() bool { return d.jobs.get("orders-db-backup") == nil })
	if d.claims.get("orders-db-backups") == nil {
		t.Error("the volume with the backups is gone")
	}
	d.of.merge("orders-db", `{"spec": {"backupEnabled": true}}`)
	kit.Await(t, "there are backups", func() bool { return d.jobs.get("orders-db-backup") != nil })

	// It is scaled, and what others do to it is put right.
	d.of.merge("orders-db", `{"spec": {"replicas": 3}}`)
	kit.Await(t, "it is scaled", func() bool { return d.replicas() == 3 })
	d.sets.merge("orders-db-db", `{"spec": {"replicas": 1}}`)
	kit.Await(t, "the number of replicas is put right", func() bool { return d.replicas() == 3 })
	before := d.sets.get("orders-db-db").GetUID()
	kit.Await(t, "the operator notices that the StatefulSet is missing", func() bool {
		d.awaitRest() // an apply that is in progress would create it again unnoticed
		if d.Log.Has("StatefulSet for orders-db missing, recreating") {
			return true
		}
		d.sets.delete("orders-db-db")
		return false
	})
	kit.Await(t, "the StatefulSet is made again", func() bool {
		set := d.sets.get("orders-db-db")
		return set != nil && set.GetUID() != before && set.GetDeletionTimestamp() == nil
	})

	// Claims are not resized with the template: that is left to people.
	d.of.merge("orders-db", `{"spec": {"storage": "200Gi"}}`)
	d.Log.WaitFor(t, "[WARNING", "Storage resize for orders-db requires manual PVC expansion")
	kit.Await(t, "the action is pending", func() bool {
		return field(d.of.get("orders-db"), "status", "pendingAction") == "Resize storage to 200Gi"
	})
	d.of.merge("orders-db", `{"spec": {"storage": "100Gi"}}`)
	kit.Await(t, "nothing is pending", func() bool { return field(d.of.get("orders-db"), "status", "pendingAction") == "" })

	d.awaitRest()

	// It goes with everything that it has.
	d.of.delete("orders-db")
	kit.Await(t, "the database is gone", func() bool { return d.of.get("orders-db") == nil })
	for _, part := range []objects{d.sets, d.services, d.secrets} {
		part.awaitCollected("orders-db-db")
	}
	d.end(t)
	if lines := d.Log.With("[ERROR"); len(lines) > 0 {
		t.Errorf("got %q", lines)
	}
	for _, line := range []string{
		"Database operator starting up", "Creating database orders-db in ", "Database orders-db provisioning started",
		"Disabled backups for orders-db", "Enabled backups for orders-db", "Scaling orders-db from 2 to 3 replicas",
		"orders-db: ready=1 desired=2, reconciling", "StatefulSet for orders-db missing, recreating",
		"Deleting database orders-db from ",
	} {
		if len(d.Log.With(line)) == 0 {
			t.Errorf("there is no line %q", line)
		}
	}
}

// A StatefulSet of another application has the name that the operator needs.
func TestADatabaseThatCannotBeMadeIsFailedUntilItCan(t *testing.T) {
	t.Parallel()
	d := startDatabases(t, func(d databases) {
		labels := map[string]any{"app": "another"}
		d.sets.create("orders-db-db", map[string]any{"spec": map[string]any{
			"replicas": int64(0),
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": "busybox"}}},
			},
		}})
	})
	d.awaitState("Failed")
	failed := d.of.get("orders-db")
	if got := field(failed, "status", "error"); !strings.Contains(got, "StatefulSet orders-db-db exists and is not a child") {
		t.Errorf("status.error is %q", got)
	}
	d.Log.WaitFor(t, "[ERROR", "Handler 'children' failed with an exception and will ")
	events := objects{t, d.of.namespace, "Event", schema.GroupVersionResource{Version: "v1", Resource: "events"}}
	kit.Await(t, "the event is posted", func() bool {
		return slices.ContainsFunc(events.list(), func(e unstructured.Unstructured) bool {
			return field(&e, "reason") == "ProvisionFailed" && field(&e, "type") == "Warning" && field(&e, "involvedObject", "name") == "orders-db"
		})
	})
	if got := d.conditions(); got["Ready"] != "False" {
		t.Errorf("conditions are %v", got)
	}

	// The other one is deleted. A change of the database makes the next attempt earlier.
	d.sets.delete("orders-db-db")
	d.of.merge("orders-db", `{"spec": {"replicas": 1}}`)
	d.awaitState("Provisioning")
	if got := field(d.of.get("orders-db"), "status", "error"); got != "" {
		t.Errorf("status.error is still %q", got)
	}
	d.end(t)
}

func TestTheDefinitionOfDatabasesRefusesWhatMakesNoSense(t *testing.T) {
	t.Parallel()
	apply(t, "../../../examples/database/deploy/crd.yaml")
	of := objects{t, namespace(t), "Database", schema.GroupVersionResource{Group: "techoral.com", Version: "v1", Resource: "databases"}}
	good := func() map[string]any {
		return map[string]any{"engine": "mysql", "version": "8.4", "storage": "1Gi"}
	}
	of.create("good", map[string]any{"spec": good()})
	for name, change := range map[string]func(spec map[string]any){
		"another engine":    func(spec map[string]any) { spec["engine"] = "oracle" },
		"no version":        func(spec map[string]any) { delete(spec, "version") },
		"a strange version": func(spec map[string]any) { spec["version"] = "8; rm" },
		"storage as text":   func(spec map[string]any) { spec["storage"] = "a lot" },
		"too many replicas": func(spec map[string]any) { spec["replicas"] = int64(6) },
		"no replicas":       func(spec map[string]any) { spec["replicas"] = int64(0) },
	} {
		spec := good()
		change(spec)
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "techoral.com/v1", "kind": "Database",
			"metadata": map[string]any{"name": "bad"}, "spec": spec,
		}}
		if _, err := of.client().Create(t.Context(), object, metav1.CreateOptions{}); err == nil {
			t.Errorf("%s is not refused", name)
			of.delete("bad")
		}
	}
	if err := of.tryMerge("good", `{"spec": {"engine": "mariadb"}}`); err == nil {
		t.Error("another engine is not refused")
	}
	if err := of.tryMerge("good", `{"spec": {"storage": "2Gi"}}`); err != nil {
		t.Errorf("another size is refused: %v", err)
	}
}
