package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"gopf.dev/gopf"
)

func newOperator() *gopf.Operator {
	op := gopf.New()
	op.Settings.Posting.ReportingComponent = "database-operator" // also the field manager of applied children
	op.OnStartup("startup", func(_ context.Context, a *gopf.Activity) error {
		a.Log.Info("Database operator starting up")
		return nil
	})

	databases := gopf.For[*Database](op, "techoral.com/v1/databases")
	databases.OnCreate("create", create)
	databases.OnUpdate("update", update, gopf.Backoff(10*time.Second))
	databases.OnDelete("delete", stopBackups)
	databases.Field("spec.backupEnabled").On(gopf.Create|gopf.Update, "backup", toggleBackup)
	databases.Timer("reconcile", time.Minute, reconcile)

	// Requests that the handlers send. 'gopf manifests' grants them.
	gopf.RegisterType[*appsv1.StatefulSet](op, "apps/v1/statefulsets", gopf.May("get", "create", "patch"))
	gopf.RegisterType[*batchv1.CronJob](op, "batch/v1/cronjobs", gopf.May("create", "patch", "delete"))
	gopf.RegisterType[*corev1.Service](op, "v1/services", gopf.May("create", "patch"))
	gopf.RegisterType[*corev1.Secret](op, "v1/secrets", gopf.May("create"))
	gopf.RegisterType[*corev1.PersistentVolumeClaim](op, "v1/persistentvolumeclaims", gopf.May("get", "create"))

	// An event of a child makes the timer of its owner due at once.
	gopf.WakeOwner(gopf.For[*appsv1.StatefulSet](op, "apps/v1/statefulsets"), databases)
	gopf.WakeOwner(gopf.For[*batchv1.CronJob](op, "batch/v1/cronjobs"), databases)
	return op
}

// create creates the children of a database. If it fails, the status contains the error,
// and the timer retries every minute.
func create(ctx context.Context, c *gopf.Change[*Database]) error {
	db := c.Object
	c.Log.Info(fmt.Sprintf("Creating database %s in %s", db.Name, db.Namespace))
	set, err := provision(ctx, c.Subject)
	switch {
	case err != nil && ctx.Err() != nil:
		return err // the operator is shutting down: its successor calls this handler again
	case err != nil:
		c.Log.Error(fmt.Sprintf("Failed to create database %s: %v", db.Name, err))
		c.Event(gopf.Warning, "ProvisionFailed", "%v", err)
		c.Patch.MergeStatus(failure(db, err))
		return gopf.Permanent(fmt.Errorf("Database creation failed: %w", err))
	}
	c.Patch.MergeStatus(observe(db, set))
	c.Event(gopf.Normal, provisioning, "Database is being provisioned")
	c.Log.Info(fmt.Sprintf("Database %s provisioning started", db.Name))
	return nil
}

// update updates the children. It does not report the state: events of the children make
// the timer due, which does.
func update(ctx context.Context, c *gopf.Change[*Database]) error {
	db := c.Object
	c.Log.Info(fmt.Sprintf("Updating database %s: %s", db.Name, c.Diff))
	set, err := provision(ctx, c.Subject)
	if err != nil {
		return err
	}
	for _, item := range c.Diff {
		switch strings.Join(item.Path, ".") {
		case "spec.replicas":
			c.Log.Info(fmt.Sprintf("Scaling %s from %v to %v replicas", db.Name, item.Old, item.New))
			c.Patch.Set("status.replicas", db.Spec.Replicas)
		case "spec.version":
			c.Patch.Set("status.version", db.Spec.Version)
		case "spec.storage":
			pending, err := pendingAction(ctx, c.Subject, set)
			if err != nil {
				return err
			}
			if pending == "" { // the change was reverted
				c.Patch.Remove("status.pendingAction")
				continue
			}
			c.Log.Warn(fmt.Sprintf("Storage resize for %s requires manual PVC expansion", db.Name))
			c.Event(gopf.Warning, "StorageResize", "Storage resize from %v to %v requires manual PVC expansion", item.Old, item.New)
			c.Patch.Set("status.pendingAction", pending)
		}
	}
	return nil
}

// stopBackups deletes the CronJob before the database is deleted, so no backup starts
// during the deletion. The garbage collector deletes the other children.
func stopBackups(ctx context.Context, c *gopf.Change[*Database]) error {
	db := c.Object
	c.Log.Info(fmt.Sprintf("Deleting database %s from %s", db.Name, db.Namespace))
	if err := c.API.Delete(ctx, backupJob(db)); err != nil {
		return err
	}
	c.Log.Info(fmt.Sprintf("Database %s cleanup complete", db.Name))
	return nil
}

// toggleBackup is called when spec.backupEnabled changes, and on creation.
func toggleBackup(ctx context.Context, c *gopf.Change[*Database]) error {
	before, _ := c.OldValue()
	switch was, is := before == true, c.Object.Spec.BackupEnabled; {
	case is && !was:
		if err := enableBackups(ctx, c.Subject); err != nil {
			return err
		}
		c.Log.Info(fmt.Sprintf("Enabled backups for %s", c.Object.Name))
	case was && !is:
		if err := c.API.Delete(ctx, backupJob(c.Object)); err != nil { // the volume with the backups stays
			return err
		}
		c.Log.Info(fmt.Sprintf("Disabled backups for %s", c.Object.Name))
	}
	return nil
}

// reconcile corrects drift: it restores children that other clients changed or
// deleted, and reports the state.
func reconcile(ctx context.Context, t *gopf.Tick[*Database]) error {
	db := t.Object
	if db.DeletionTimestamp != nil {
		return nil
	}
	existing, err := findSet(ctx, t.Subject)
	switch {
	case err != nil:
		return err
	case existing == nil && db.Status.State != "": // otherwise the creation is still running
		t.Log.Warn(fmt.Sprintf("StatefulSet for %s missing, recreating", db.Name))
	case existing != nil && existing.Status.ReadyReplicas != db.Spec.Replicas:
		t.Log.Warn(fmt.Sprintf("%s: ready=%d desired=%d, reconciling", db.Name, existing.Status.ReadyReplicas, db.Spec.Replicas))
	}
	set, err := provision(ctx, t.Subject)
	if err != nil {
		return err
	}
	status := observe(db, set)
	if status.PendingAction, err = pendingAction(ctx, t.Subject, set); err != nil {
		return err
	}
	if status.State != db.Status.State {
		t.Event(gopf.Normal, status.State, "%d of %d replicas are ready", status.ReadyReplicas, db.Spec.Replicas)
	}
	report(t.Subject, status)
	return nil
}
