package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/client"
	"gopf.dev/gopf/gopftest"
)

// upgradeNodes has the shape of the update of a CrateDB cluster: each step needs the one
// before, every group of nodes is a step, and the last one reports the outcome.
func upgradeNodes(ctx context.Context, ch *gopf.Change[*Example]) error {
	step := ch.Sub("suspend_backups", func(ctx context.Context, ch *gopf.Change[*Example]) error {
		return ch.API.Merge(ctx, &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "backup"}}, map[string]any{"spec": map[string]any{"suspend": true}})
	})
	for _, name := range ch.Object.Spec.Items {
		step = ch.Sub("upgrade_"+name, func(ctx context.Context, ch *gopf.Change[*Example]) error {
			set, err := client.Edit(ctx, ch.API, name, func(set *appsv1.StatefulSet) error {
				set.Spec.Template.Spec.Containers[0].Image = "crate:" + ch.Object.Spec.Field
				return nil
			})
			switch {
			case err != nil:
				return err
			case set.Status.ObservedGeneration < set.Generation:
				return gopf.Wait(10*time.Second, "%s restarts", name)
			case set.Status.ReadyReplicas == 0:
				return gopf.Permanent(errors.New(name + " does not start"))
			}
			return nil
		}, gopf.DependsOn(step), gopf.Timeout(time.Hour))
	}
	ch.Sub("report", func(ctx context.Context, ch *gopf.Change[*Example]) error {
		_, failed := step.Outcome(ctx)
		if failed != nil {
			ch.Event(client.Warning, "UpgradeFailed", "%v", failed)
		}
		ch.SetCondition("Ready", failed == nil, "Finished", ch.Object.Spec.Field)
		return ch.API.Merge(ctx, &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "backup"}}, map[string]any{"spec": map[string]any{"suspend": false}})
	}, gopf.Finally())
	return ch.RunSubs(ctx)
}

func TestStepsOfAnUpgradeNeedNoHelpers(t *testing.T) {
	const sets = "apps/v1/statefulsets"
	for ready, want := range map[int]string{1: "crate:b crate:b True false\n", 0: "crate:b crate:a False false\n"} {
		synctest.Test(t, func(t *testing.T) {
			c := gopftest.NewCluster(t, resource, sets, "batch/v1/cronjobs")
			c.Load(t, "testdata/steps.yaml")
			op := gopf.New()
			gopf.For[*Example](op, resource).OnUpdate("upgrade", upgradeNodes)
			gopftest.Start(t, op, c)
			time.Sleep(time.Minute)
			changeField(t, c, "x", "b")
			time.Sleep(time.Minute)
			if job := gopftest.Get[*batchv1.CronJob](t, c, "batch/v1/cronjobs", "default", "backup"); !*job.Spec.Suspend {
				t.Error("backups are made during the upgrade")
			}
			for _, name := range []string{"hot", "cold"} {
				c.PatchStatus(t, sets, "default", name, map[string]any{"status": map[string]any{"observedGeneration": 2, "replicas": 1, "readyReplicas": ready}})
				time.Sleep(time.Minute)
			}
			hot, cold := gopftest.Get[*appsv1.StatefulSet](t, c, sets, "default", "hot"), gopftest.Get[*appsv1.StatefulSet](t, c, sets, "default", "cold")
			job := gopftest.Get[*batchv1.CronJob](t, c, "batch/v1/cronjobs", "default", "backup")
			if got := fmt.Sprintln(hot.Spec.Template.Spec.Containers[0].Image, cold.Spec.Template.Spec.Containers[0].Image, readyCondition(get(t, c, "x"))["status"], *job.Spec.Suspend); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
