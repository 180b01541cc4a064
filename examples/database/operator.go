package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"gopf.dev/gopf"
)

func newOperator() *gopf.Operator {
	op := gopf.New(gopf.Identity("database-operator.techoral.com"))
	op.OnStartup("startup", func(_ context.Context, a *gopf.Activity) error {
		a.Log.Info("Database operator starting up")
		return nil
	})
	databases := gopf.For[*Database](op, "techoral.com/v1/databases")
	databases.Reconcile("children", children,
		gopf.Owns[*appsv1.StatefulSet](), gopf.Owns[*corev1.Service](), gopf.Owns[*corev1.Secret](),
		gopf.Owns[*corev1.PersistentVolumeClaim](), gopf.Owns[*batchv1.CronJob](),
		gopf.Watches[*corev1.PersistentVolumeClaim](dataVolumes)) // which users resize
	databases.OnCreate("create", create)
	databases.OnUpdate("update", update)
	databases.OnDelete("delete", func(_ context.Context, c *gopf.Change[*Database]) error {
		c.Log.Info(fmt.Sprintf("Deleting database %s from %s", c.Object.Name, c.Object.Namespace))
		return nil // the operator deletes the children: backups first, the password last
	}, gopf.Optional())
	return op
}

// children declares the children of a database and reports the state. It is called when
// the database, one of its children or one of its volumes has changed.
func children(ctx context.Context, r *gopf.Reconciliation[*Database]) error {
	db := r.Object
	secret := gopf.Want(r, password(db, rand.Text()), gopf.CreateOnly())
	gopf.Want(r, service(db))
	set := gopf.Want(r, statefulSet(db), gopf.DependsOn(secret),
		gopf.CreateOnlyFields("spec.volumeClaimTemplates")) // the API server rejects changes of templates
	if db.Spec.BackupEnabled || db.Status.Backups { // the backups stay when there are no new ones
		gopf.Want(r, backupVolume(db), gopf.CreateOnly(), gopf.ReadyWhen(boundLater))
	}
	if db.Spec.BackupEnabled {
		gopf.Want(r, backupJob(db), gopf.DependsOn(set))
	}
	switch readyReplicas := set.Live().Status.ReadyReplicas; {
	case !set.Exists && db.Status.State != "":
		r.Log.Warn(fmt.Sprintf("StatefulSet for %s missing, recreating", db.Name))
	case set.Exists && readyReplicas != db.Spec.Replicas:
		r.Log.Warn(fmt.Sprintf("%s: ready=%d desired=%d, reconciling", db.Name, readyReplicas, db.Spec.Replicas))
	}
	return report(ctx, r, set)
}

// boundLater is for a volume that may be bound only when the first backup uses it.
func boundLater(*corev1.PersistentVolumeClaim) bool { return true }

func create(_ context.Context, c *gopf.Change[*Database]) error {
	c.Log.Info(fmt.Sprintf("Creating database %s in %s", c.Object.Name, c.Object.Namespace))
	c.Event(gopf.Normal, provisioning, "Database is being provisioned")
	c.Log.Info(fmt.Sprintf("Database %s provisioning started", c.Object.Name))
	return nil
}

// update reports the changes. The function children does the work.
func update(_ context.Context, c *gopf.Change[*Database]) error {
	db := c.Object
	c.Log.Info(fmt.Sprintf("Updating database %s: %s", db.Name, c.Diff))
	for _, item := range c.Diff {
		switch strings.Join(item.Path, ".") {
		case "spec.replicas":
			c.Log.Info(fmt.Sprintf("Scaling %s from %v to %v replicas", db.Name, item.Old, item.New))
		case "spec.backupEnabled":
			c.Log.Info(fmt.Sprintf("%s backups for %s", map[bool]string{true: "Enabled", false: "Disabled"}[db.Spec.BackupEnabled], db.Name))
		case "spec.storage":
			c.Log.Warn(fmt.Sprintf("Storage resize for %s requires manual PVC expansion", db.Name))
			c.Event(gopf.Warning, "StorageResize", "Storage resize from %v to %v requires manual PVC expansion", item.Old, item.New)
		}
	}
	return nil
}
