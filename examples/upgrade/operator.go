package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/client"
)

// DBCluster is a database with several members.
type DBCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Version string `json:"version"`
		// +kubebuilder:default=3
		// +optional
		Members int32 `json:"members"`
	} `json:"spec"`
	Status struct {
		Version string `json:"version,omitempty"`
		Message string `json:"message,omitempty"`
	} `json:"status,omitempty"`
}

type change = gopf.Change[*DBCluster]

func newOperator() *gopf.Operator {
	op := gopf.New(gopf.Identity("upgrade.gopf.dev"))
	gopf.RegisterType[*corev1.ConfigMap](op, "v1/configmaps", gopf.May("create", "get", "patch"))
	gopf.RegisterType[*appsv1.StatefulSet](op, "apps/v1/statefulsets", gopf.May("create", "get", "patch"))
	gopf.RegisterType[*batchv1.Job](op, "batch/v1/jobs", gopf.May("create", "get"))
	clusters := gopf.For[*DBCluster](op, "gopf.dev/v1/dbclusters")
	clusters.OnCreate("create", create)
	clusters.OnField("upgrade", "spec.version", upgrade, gopf.Timeout(time.Hour))
	return op
}

// create creates the members, and a ConfigMap with a setting that they all read.
func create(ctx context.Context, c *change) error {
	settings := &corev1.ConfigMap{Data: map[string]string{"readOnly": "false"}}
	settings.Name = c.Object.Name
	if _, err := client.CreateIfAbsent(ctx, c.API, settings, client.OwnedBy(c.Object)); err != nil {
		return err
	}
	labels := map[string]string{"cluster": c.Object.Name}
	set := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{
		Replicas: &c.Object.Spec.Members, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec(c.Object.Spec.Version)},
	}}
	set.Name = c.Object.Name
	if _, err := client.CreateIfAbsent(ctx, c.API, set, client.OwnedBy(c.Object)); err != nil {
		return err
	}
	set, err := client.Get[*appsv1.StatefulSet](ctx, c.API, set.Name) // an earlier attempt may have created it with another version
	if err != nil {
		return err
	}
	c.Patch.Set("status.version", strings.TrimPrefix(set.Spec.Template.Spec.Containers[0].Image, image))
	return nil
}

const image = "example.com/db:"

func podSpec(version string) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "db", Image: image + version}}}
}

// upgrade has four steps, each of which needs the one before, and one that always runs
// last. The operator may crash at any moment: finished steps are not repeated.
func upgrade(ctx context.Context, c *change) error {
	switch running := c.Object.Status.Version; {
	case running == "":
		return gopf.Wait(5*time.Second, "the members are not created yet")
	case running == c.Object.Spec.Version && c.Reason != gopf.Update:
		return nil // a new cluster has the wanted version, unless that has changed during the creation
	}
	lock := c.Sub("lock", func(ctx context.Context, c *change) error { return setReadOnly(ctx, c, "true") })
	snapshot := c.Sub("snapshot", takeSnapshot, gopf.DependsOn(lock))
	restart := c.Sub("restart", restartMembers, gopf.DependsOn(snapshot))
	verify := c.Sub("verify", verifyMembers, gopf.DependsOn(restart), gopf.Timeout(10*time.Minute))
	c.Sub("unlock", func(ctx context.Context, c *change) error {
		if err := setReadOnly(ctx, c, "false"); err != nil {
			return err
		}
		if _, err := verify.Outcome(ctx); err != nil {
			c.Patch.Set("status.message", "The upgrade to "+c.Object.Spec.Version+" failed; see the events.")
			c.Event(client.Warning, "UpgradeFailed", "%v", err)
			return nil
		}
		c.Patch.Set("status.version", c.Object.Spec.Version)
		c.Patch.Set("status.message", "Upgraded.")
		return nil
	}, gopf.Finally())
	return c.RunSubs(ctx)
}

// setReadOnly makes all members accept only reads, or writes again.
func setReadOnly(ctx context.Context, c *change, value string) error {
	_, err := client.Edit(ctx, c.API, c.Object.Name, func(settings *corev1.ConfigMap) error {
		settings.Data["readOnly"] = value
		return nil
	})
	return err
}

// takeSnapshot runs a Job. If the Job fails, so does the upgrade.
func takeSnapshot(ctx context.Context, c *change) error {
	job := &batchv1.Job{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: podSpec(c.Object.Status.Version)}}}
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	job.Name = fmt.Sprintf("%s-before-%s", c.Object.Name, strings.ReplaceAll(c.Object.Spec.Version, ".", "-"))
	if _, err := client.CreateIfAbsent(ctx, c.API, job, client.OwnedBy(c.Object)); err != nil {
		return err
	}
	job, err := client.Get[*batchv1.Job](ctx, c.API, job.Name)
	if err != nil {
		return err
	}
	for _, condition := range job.Status.Conditions {
		if condition.Type == batchv1.JobFailed && condition.Status == corev1.ConditionTrue {
			return gopf.Permanent(fmt.Errorf("the snapshot failed: %s", condition.Message))
		}
	}
	if job.Status.Succeeded == 0 {
		return gopf.Wait(5*time.Second, "the snapshot %s is not finished", job.Name)
	}
	return nil
}

// restartMembers changes the image of the members.
func restartMembers(ctx context.Context, c *change) error {
	_, err := client.Edit(ctx, c.API, c.Object.Name, func(set *appsv1.StatefulSet) error {
		set.Spec.Template.Spec = podSpec(c.Object.Spec.Version)
		return nil
	})
	return err
}

// verifyMembers waits until all members run the new version.
func verifyMembers(ctx context.Context, c *change) error {
	set, err := client.Get[*appsv1.StatefulSet](ctx, c.API, c.Object.Name)
	if err != nil {
		return err
	}
	if set.Status.ObservedGeneration < set.Generation || set.Status.UpdatedReplicas < c.Object.Spec.Members || set.Status.ReadyReplicas < c.Object.Spec.Members {
		return gopf.Wait(5*time.Second, "%d of %d members run the new version", set.Status.UpdatedReplicas, c.Object.Spec.Members)
	}
	return nil
}
