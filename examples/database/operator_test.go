package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/logs"
)

const (
	databases = "techoral.com/v1/databases"
	sets      = "apps/v1/statefulsets"
	claims    = "v1/persistentvolumeclaims"
	cronjobs  = "batch/v1/cronjobs"
)

// lines is a log that tests may read while the operator writes to it.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// world is an operator on an in-memory cluster in virtual time.
type world struct {
	t       *testing.T
	cluster *gopftest.Cluster
	log     *lines
}

func newCluster(t *testing.T) *gopftest.Cluster {
	t.Helper()
	cluster := gopftest.NewCluster(t, sets, "v1/services", "v1/secrets", claims, cronjobs)
	cluster.Load(t, "deploy/crd.yaml")
	return cluster
}

// run runs a test in virtual time. prepare may be nil.
func run(t *testing.T, prepare func(*gopftest.Cluster), test func(t *testing.T, w world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := world{t, newCluster(t), &lines{}}
		if prepare != nil {
			prepare(w.cluster)
		}
		log := slog.New(logs.New(w.log, logs.Options{Format: logs.Full, Prefix: true, Level: slog.LevelDebug}))
		gopftest.Start(t, newOperator(), w.cluster, gopf.Log(log))
		db := &Database{
			TypeMeta:   metav1.TypeMeta{APIVersion: "techoral.com/v1", Kind: "Database"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "orders"},
			Spec:       DatabaseSpec{Engine: "postgresql", Version: "16", Storage: "100Gi", Replicas: 2, BackupEnabled: true},
		}
		w.cluster.Create(t, db)
		time.Sleep(time.Second)
		test(t, w)
	})
}

func (w world) database() *Database {
	w.t.Helper()
	return gopftest.Get[*Database](w.t, w.cluster, databases, "default", "orders")
}

func (w world) set() *appsv1.StatefulSet {
	w.t.Helper()
	return gopftest.Get[*appsv1.StatefulSet](w.t, w.cluster, sets, "default", "orders-db")
}

func (w world) change(spec map[string]any) {
	w.t.Helper()
	w.cluster.Patch(w.t, databases, "default", "orders", map[string]any{"spec": spec})
	time.Sleep(time.Second)
}

// setReady simulates the kubelet and the StatefulSet controller.
func (w world) setReady(replicas int) {
	w.t.Helper()
	w.cluster.PatchStatus(w.t, sets, "default", "orders-db", map[string]any{"status": map[string]any{
		"observedGeneration": w.set().Generation, "replicas": replicas, "currentReplicas": replicas, "updatedReplicas": replicas,
		"readyReplicas": replicas, "availableReplicas": replicas,
	}})
	time.Sleep(time.Second)
}

func (w world) logged(level, text string) {
	w.t.Helper()
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	for line := range strings.Lines(w.log.text.String()) {
		if strings.Contains(line, "["+level) && strings.Contains(line, text) {
			return
		}
	}
	w.t.Errorf("there is no %s line %q in:\n%s", level, text, w.log.text.String())
}

func (w world) posted(kind, reason, text string) {
	w.t.Helper()
	for _, event := range w.cluster.List(w.t, "v1/events", "default") {
		if event.Object["type"] == kind && event.Object["reason"] == reason && strings.Contains(fmt.Sprint(event.Object["message"]), text) {
			return
		}
	}
	w.t.Errorf("there is no event %s %s %q", kind, reason, text)
}

func (w world) condition(kind string, status metav1.ConditionStatus, reason, message string) {
	w.t.Helper()
	c := meta.FindStatusCondition(w.database().Status.Conditions, kind)
	if c == nil || c.Status != status || c.Reason != reason || !strings.Contains(c.Message, message) || c.LastTransitionTime.IsZero() {
		w.t.Errorf("condition %s: got %+v, want %s, %s, %q", kind, c, status, reason, message)
	}
}

func TestCreationCreatesAllChildren(t *testing.T) {
	run(t, nil, func(t *testing.T, w world) {
		w.logged("INFO", "Database operator starting up")
		w.logged("INFO", "Creating database orders in default")
		w.logged("INFO", "Database orders provisioning started")

		status := w.database().Status
		if status.State != "Provisioning" || status.Engine != "postgresql" || status.Version != "16" || status.Replicas != 2 || status.Error != "" {
			t.Errorf("the status is %+v", status)
		}
		if status.Endpoint != "orders-db.default.svc.cluster.local:5432" {
			t.Errorf("the endpoint is %s", status.Endpoint)
		}
		w.condition("Ready", metav1.ConditionFalse, "ChildrenNotReady", "StatefulSet orders-db")
		w.condition("Available", metav1.ConditionFalse, "Provisioning", "0 of 2 replicas are ready")

		set := w.set()
		container := set.Spec.Template.Spec.Containers[0]
		if *set.Spec.Replicas != 2 || set.Spec.ServiceName != "orders-db" || set.Spec.Selector.MatchLabels["app"] != "orders-db" ||
			set.Labels["app"] != "orders" || set.Labels["managed-by"] != "database-operator" ||
			container.Name != "db" || container.Image != "bitnami/postgresql:16" || container.Ports[0].ContainerPort != 5432 {
			t.Errorf("the StatefulSet is %+v", set)
		}
		for name, got := range map[string]string{
			"256Mi": container.Resources.Requests.Memory().String(), "100m": container.Resources.Requests.Cpu().String(),
			"1Gi": container.Resources.Limits.Memory().String(), "500m": container.Resources.Limits.Cpu().String(),
		} {
			if got != name {
				t.Errorf("a resource is %s, want %s", got, name)
			}
		}
		if _, found := w.cluster.Lookup(t, cronjobs, "default", "orders-backup"); found {
			t.Error("there are backups of a database that is not ready")
		}
		w.setReady(2)
		w.condition("Ready", metav1.ConditionTrue, "ChildrenReady", "All children are ready")
		for plural, name := range map[string]string{
			sets: "orders-db", "v1/services": "orders-db", "v1/secrets": "orders-db", cronjobs: "orders-backup", claims: "orders-backups",
		} {
			child, found := w.cluster.Lookup(t, plural, "default", name)
			if !found || metav1.GetControllerOf(child) == nil {
				t.Errorf("%s %s: found %v, or not owned", plural, name, found)
			}
		}
	})
}

func TestChildThatCannotBeAppliedIsReportedAndRetried(t *testing.T) {
	for _, child := range []string{"secrets", "services", "statefulsets", "persistentvolumeclaims"} {
		t.Run(child, func(t *testing.T) {
			var fault *gopftest.Fault
			prepare := func(c *gopftest.Cluster) { fault = c.Fault(gopftest.Writes(child), gopftest.Fail(422)) }
			run(t, prepare, func(t *testing.T, w world) {
				time.Sleep(10 * time.Second)
				status := w.database().Status
				if status.State != "Failed" || !strings.Contains(status.Error, "the server rejected our request") {
					t.Fatalf("the status is %+v", status)
				}
				w.condition("Ready", metav1.ConditionFalse, "ApplyFailed", "the server rejected our request")
				w.posted("Warning", "ProvisionFailed", "the server rejected our request")
				fault.Stop()
				time.Sleep(5 * time.Minute)
				if status := w.database().Status; status.State != "Provisioning" || status.Error != "" {
					t.Errorf("the retry left the status %+v", status)
				}
				w.setReady(2)
				w.condition("Ready", metav1.ConditionTrue, "ChildrenReady", "All children are ready")
			})
		})
	}
}

func TestShutdownDuringCreationReportsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCluster(t)
		fault := cluster.Fault(gopftest.Writes("statefulsets"), gopftest.Hang())
		db := &Database{
			TypeMeta:   metav1.TypeMeta{APIVersion: "techoral.com/v1", Kind: "Database"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "orders"},
			Spec:       DatabaseSpec{Engine: "mysql", Version: "8.4", Storage: "1Gi", Replicas: 1},
		}
		cluster.Create(t, db)
		stop := gopftest.Start(t, newOperator(), cluster)
		time.Sleep(3 * time.Second)
		stop()
		if got := gopftest.Get[*Database](t, cluster, databases, "default", "orders").Status; got.Error != "" {
			t.Errorf("the status is %+v", got)
		}
		fault.Stop()
		gopftest.Start(t, newOperator(), cluster)
		time.Sleep(time.Minute)
		if got := gopftest.Get[*Database](t, cluster, databases, "default", "orders").Status.State; got != "Provisioning" {
			t.Errorf("the next operator left the state %q", got)
		}
	})
}

func TestStateFollowsTheReadyReplicas(t *testing.T) {
	run(t, nil, func(t *testing.T, w world) {
		for _, step := range []struct {
			ready     int
			state     string
			available metav1.ConditionStatus
		}{
			{0, "Provisioning", metav1.ConditionFalse},
			{1, "Degraded", metav1.ConditionTrue},
			{2, "Ready", metav1.ConditionTrue},
			{3, "Degraded", metav1.ConditionTrue},
			{0, "Degraded", metav1.ConditionFalse},
		} {
			w.setReady(step.ready)
			time.Sleep(time.Minute)
			status := w.database().Status
			if status.State != step.state || int(status.ReadyReplicas) != step.ready {
				t.Errorf("%d replicas are ready, and the status is %+v", step.ready, status)
			}
			if available := meta.FindStatusCondition(status.Conditions, "Available"); available.Status != step.available {
				t.Errorf("%d replicas are ready, and Available is %s", step.ready, available.Status)
			}
		}
		w.logged("WARNING", "orders: ready=1 desired=2, reconciling")
	})
}

func TestChangedReplicasScaleTheStatefulSet(t *testing.T) {
	run(t, nil, func(t *testing.T, w world) {
		w.change(map[string]any{"replicas": 4})
		w.logged("INFO", "Updating database orders: ")
		w.logged("INFO", "Scaling orders from 2 to 4 replicas")
		if got := *w.set().Spec.Replicas; got != 4 {
			t.Errorf("there are %d replicas", got)
		}
		if got := w.database().Status.Replicas; got != 4 {
			t.Errorf("status.replicas is %d", got)
		}
	})
}

func TestStorageResizeIsLeftToTheUser(t *testing.T) {
	run(t, nil, func(t *testing.T, w world) {
		w.change(map[string]any{"storage": "200Gi"})
		w.logged("WARNING", "Storage resize for orders requires manual PVC expansion")
		w.posted("Warning", "StorageResize", "from 100Gi to 200Gi")
		time.Sleep(5 * time.Minute)
		if got := w.database().Status.PendingAction; got != "Resize storage to 200Gi" {
			t.Fatalf("the pending action is %q", got)
		}
		set := w.set()
		if got := templateSize(set); got.String() != "100Gi" {
			t.Errorf("the template requests %s; the API server would reject it", got.String())
		}

		for i := range 2 { // a user expands the PVCs, one after the other
			if got := w.database().Status.PendingAction; got == "" {
				t.Errorf("nothing is pending after %d PVCs were resized", i)
			}
			claim := set.Spec.VolumeClaimTemplates[0].DeepCopy()
			claim.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}
			claim.Namespace, claim.Name = "default", fmt.Sprintf("data-orders-db-%d", i)
			claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("200Gi")
			w.cluster.Create(t, claim)
			time.Sleep(time.Second) // the operator watches the PVCs
		}
		if got := w.database().Status.PendingAction; got != "" {
			t.Errorf("all PVCs are resized, but %q is pending", got)
		}
	})
}

func TestRevertedStorageChangeLeavesNothingPending(t *testing.T) {
	run(t, nil, func(t *testing.T, w world) {
		w.change(map[string]any{"storage": "200Gi"})
		w.change(map[string]any{"storage": "100Gi"})
		if got := w.database().Status.PendingAction; got != "" {
			t.Errorf("%q is pending", got)
		}
	})
}

func TestMissingStatefulSetIsRecreated(t *testing.T) {
	run(t, nil, func(t *testing.T, w world) {
		w.cluster.Delete(t, sets, "default", "orders-db")
		time.Sleep(time.Second)
		w.logged("WARNING", "StatefulSet for orders missing, recreating")
		w.set()
	})
}

func TestBackupsAreDisabledAndEnabled(t *testing.T) {
	run(t, nil, func(t *testing.T, w world) {
		w.setReady(2)
		w.cluster.Get(t, cronjobs, "default", "orders-backup")
		w.change(map[string]any{"backupEnabled": false})
		w.logged("INFO", "Disabled backups for orders")
		if _, found := w.cluster.Lookup(t, cronjobs, "default", "orders-backup"); found {
			t.Error("the CronJob still exists")
		}
		time.Sleep(2 * time.Minute)
		if _, found := w.cluster.Lookup(t, cronjobs, "default", "orders-backup"); found {
			t.Error("the operator recreated the CronJob")
		}
		w.cluster.Get(t, claims, "default", "orders-backups") // the backups stay
		w.change(map[string]any{"backupEnabled": true})
		w.cluster.Get(t, cronjobs, "default", "orders-backup")
	})
}

func TestDeletionStopsBackupsFirst(t *testing.T) {
	run(t, nil, func(t *testing.T, w world) {
		w.setReady(2)
		fault := w.cluster.Fault(gopftest.Requests("delete", "cronjobs"), gopftest.Fail(422))
		w.cluster.Delete(t, databases, "default", "orders")
		time.Sleep(time.Second)
		w.logged("INFO", "Deleting database orders from default")
		if fault.Struck() == 0 {
			t.Error("the operator did not try to delete the CronJob")
		}
		w.set() // still exists: the CronJob could not be deleted
		fault.Stop()
		time.Sleep(2 * time.Minute)
		w.cluster.WaitGone(t, databases, "default", "orders")
		for _, resource := range []string{sets, "v1/services", "v1/secrets", cronjobs} {
			if left := w.cluster.List(t, resource, "default"); len(left) > 0 {
				t.Errorf("%s are left: %v", resource, left)
			}
		}
	})
}
