package docs_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

func database(size int) *Database {
	db := &Database{
		TypeMeta:   metav1.TypeMeta{APIVersion: "docs.gopf.dev/v1", Kind: "Database"},
		ObjectMeta: metav1.ObjectMeta{Name: "main", Namespace: "default"},
	}
	db.Spec.Size = size
	return db
}

func TestCreate(t *testing.T) {
	cluster := gopftest.NewCluster(t, databases)
	call := gopftest.Change(t, cluster, database(1), gopftest.HandlerID("create"))
	if err := create(t.Context(), call.Change); err != nil {
		t.Fatal(err)
	}
	if db := call.Apply(); db.Status.Phase != "Ready" {
		t.Errorf("the phase is %q", db.Status.Phase)
	}
	if posted := call.Posted(); len(posted) != 1 || posted[0].Reason != "Created" {
		t.Errorf("posted %v", posted)
	}
}

func TestShrinkingFails(t *testing.T) {
	cluster := gopftest.NewCluster(t, databases)
	call := gopftest.Change(t, cluster, database(1), gopftest.Was(database(2)), gopftest.AboutField("spec.size"))
	var permanent *gopf.PermanentError
	if err := call.Run(resize); !errors.As(err, &permanent) {
		t.Errorf("got %v, want a permanent error", err)
	}
}

func TestADayOfBackups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := gopftest.NewCluster(t, databases)
		gopftest.Start(t, newOperator(), cluster)
		cluster.Create(t, database(1))
		time.Sleep(24*time.Hour + time.Minute)
		if db := gopftest.Get[*Database](t, cluster, databases, "default", "main"); db.Status.Backups != 4 {
			t.Errorf("there are %d backups", db.Status.Backups)
		}
	})
}

func TestLife(t *testing.T) {
	cluster := gopftest.AnyCluster(t)
	cluster.Load(t, "testdata/crd.yaml")
	gopftest.Start(t, newOperator(), cluster)
	cluster.Create(t, database(1))
	gopftest.Wait(t, cluster, databases, "default", "main", func(db *Database) bool { return db.Status.Phase == "Ready" })
	cluster.Delete(t, databases, "default", "main")
	cluster.WaitGone(t, databases, "default", "main")
}

func TestAServerThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := gopftest.NewCluster(t, databases)
		cluster.Fault(gopftest.Writes("databases").First(2), gopftest.Fail(500))
		cluster.Fault(gopftest.Writes("databases").Nth(3), gopftest.LoseAnswer())
		gopftest.Start(t, newOperator(), cluster)
		cluster.Create(t, database(1))
		time.Sleep(time.Minute)
		if db := gopftest.Get[*Database](t, cluster, databases, "default", "main"); db.Status.Phase != "Ready" {
			t.Errorf("the phase is %q", db.Status.Phase)
		}
	})
}

func TestCrashes(t *testing.T) {
	gopftest.CrashAtEveryWrite(t, gopftest.Life{
		Cluster:  func(t testing.TB) *gopftest.Cluster { return gopftest.NewCluster(t, databases) },
		Operator: newOperator,
		Live: func(t testing.TB, cluster *gopftest.Cluster) {
			cluster.Create(t, database(1))
			time.Sleep(time.Minute)
			if db := gopftest.Get[*Database](t, cluster, databases, "default", "main"); db.Status.Phase != "Ready" {
				t.Errorf("the phase is %q", db.Status.Phase)
			}
			cluster.Delete(t, databases, "default", "main")
			time.Sleep(time.Minute)
			cluster.WaitGone(t, databases, "default", "main")
		},
	})
}

func TestPermissions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := gopftest.NewCluster(t, databases, "clusterroles", "clusterrolebindings")
		cluster.Load(t, "testdata/rbac.yaml")
		gopftest.Start(t, newOperator(), cluster, gopf.Cluster(cluster.As("system:serviceaccount:default:operator")))
		cluster.Create(t, database(1))
		time.Sleep(time.Minute)
		if db := gopftest.Get[*Database](t, cluster, databases, "default", "main"); db.Status.Phase != "Ready" {
			t.Errorf("the phase is %q", db.Status.Phase)
		}
	})
}

func TestProgram(t *testing.T) {
	cluster := gopftest.NewCluster(t, databases)
	program := gopftest.RunCommand(t, newOperator(), cluster, "run", "--all-namespaces")
	cluster.Create(t, database(1))
	gopftest.Wait(t, cluster, databases, "default", "main", func(db *Database) bool { return db.Status.Phase == "Ready" })
	if code := program.Stop(); code != 0 {
		t.Errorf("exit code %d, output:\n%s", code, program.Output())
	}
}
