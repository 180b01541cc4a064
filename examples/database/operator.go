package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gopf.dev/gopf"
)

func newOperator() *gopf.Operator {
	op := gopf.New()
	op.Settings.Posting.ReportingComponent = "database-operator" // also owns the fields that are applied

	databases := gopf.For[*Database](op, "techoral.com/v1/databases")
	databases.OnCreate("create", create, gopf.Backoff(10*time.Second))
	databases.OnUpdate("update", update, gopf.Backoff(10*time.Second))
	databases.Field("spec.backupEnabled").On(gopf.Create|gopf.Update, "backup", toggleBackup)
	databases.OnDelete("delete", stopBackups)
	databases.Timer("reconcile", time.Minute, reconcile)

	// Whatever happens to the children makes the timer of their owner be due at once.
	gopf.WakeOwner(gopf.For[*appsv1.StatefulSet](op, "apps/v1/statefulsets"), databases)
	gopf.WakeOwner(gopf.For[*batchv1.CronJob](op, "batch/v1/cronjobs"), databases)
	return op
}

func create(ctx context.Context, c *gopf.Change[*Database]) error {
	if err := createPassword(ctx, c.Subject); err != nil {
		return err
	}
	set := statefulSet(c.Object)
	if err := apply(ctx, c.Subject, service(c.Object), set); err != nil {
		return err
	}
	c.Patch.Status(observe(c.Object, set))
	c.Info("Provisioning", "The database is being made")
	return nil
}

func update(ctx context.Context, c *gopf.Change[*Database]) error {
	for _, item := range c.Diff {
		c.Log.Info("The database is changed.", "change", item.String())
	}
	return apply(ctx, c.Subject, service(c.Object), statefulSet(c.Object))
}

// toggleBackup is called when backups are turned on or off, also by the creation.
func toggleBackup(ctx context.Context, c *gopf.Change[*Database]) error {
	if c.Object.Spec.BackupEnabled {
		c.Log.Info("Backups are turned on.")
		return apply(ctx, c.Subject, backup(c.Object)...)
	}
	c.Log.Info("Backups are turned off.")
	return c.API.Delete(ctx, backupJob(c.Object)) // those that were made are kept
}

// stopBackups keeps backups from being begun while the database goes. Everything
// else goes with its owner.
func stopBackups(ctx context.Context, c *gopf.Change[*Database]) error {
	return c.API.Delete(ctx, backupJob(c.Object))
}

// reconcile puts right what others have changed or deleted, and tells how the
// database is.
func reconcile(ctx context.Context, t *gopf.Tick[*Database]) error {
	if t.Object.DeletionTimestamp != nil {
		return nil
	}
	set := statefulSet(t.Object)
	wanted := []gopf.Object{service(t.Object), set}
	if t.Object.Spec.BackupEnabled {
		wanted = append(wanted, backup(t.Object)...)
	}
	if err := apply(ctx, t.Subject, wanted...); err != nil {
		return err
	}
	status := observe(t.Object, set) // which is as it is in the cluster now
	if status.State != t.Object.Status.State {
		t.Info(status.State, fmt.Sprintf("%d of %d replicas are ready", status.ReadyReplicas, t.Object.Spec.Replicas))
	}
	t.Patch.Status(status)
	return nil
}

// apply makes children as they are wanted, whatever they are like now, and reads
// what they are like then. Fields that nobody here wants anything of are left alone.
func apply(ctx context.Context, s *gopf.Subject[*Database], children ...gopf.Object) error {
	for _, child := range children {
		if err := s.Adopt(child); err != nil {
			return gopf.Permanent(err)
		}
		if err := s.API.Apply(ctx, child, gopf.Force()); err != nil {
			return fmt.Errorf("apply %T %s: %w", child, child.GetName(), err)
		}
	}
	return nil
}

// createPassword is done once: a password that exists must not be changed.
func createPassword(ctx context.Context, s *gopf.Subject[*Database]) error {
	secret := password(s.Object, rand.Text())
	if err := s.Adopt(secret); err != nil {
		return gopf.Permanent(err)
	}
	if err := s.API.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the password: %w", err)
	}
	return nil
}
