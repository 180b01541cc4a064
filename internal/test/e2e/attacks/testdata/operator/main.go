// Command operator is the operator that the attacks are aimed at. It has a handler of
// each kind, and webhooks for one of its resources.
package main

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/cli"
	"gopf.dev/gopf/client"
	"gopf.dev/gopf/webhook"
)

// Group is the API group of the resources.
const group = "attacks.gopf.dev/v1/"

func main() {
	op := gopf.New(gopf.Identity("kopf.zalando.org"))       // the names that the attacks forge
	port, _ := strconv.Atoi(os.Getenv("GOPF_ATTACKS_PORT")) // 0 is any free port
	op.Settings.Admission.Server = webhook.Local{Addr: "127.0.0.1", Port: port}
	op.Settings.Admission.Managed = "operator.attacks.gopf.dev"
	op.Settings.Execution.DefaultBackoff = 500 * time.Millisecond
	for _, plural := range []string{"targets", "plains", "guardeds"} {
		x := op.Resource(group + plural)
		x.OnCreate("create", change)
		x.OnUpdate("update", change)
		x.OnDelete("delete", change)
		x.OnField("field", "spec.field", change)
		x.Timer("timer", 5*time.Second, tick)
	}
	own(op)
	gopf.For[*Typed](op, group+"plains").On(gopf.Create|gopf.Update, "typed", typedChange)
	gopf.For[*Typed](op, group+"guardeds").Validate("guard", typedReview)
	targets := op.Resource(group + "targets")
	targets.Validate("validate", validate)
	targets.Mutate("mutate", mutate)
	cli.Main(op)
}

// Typed has lists of large structs, as the resources of many operators.
type Typed struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Jobs []struct {
			Name     string                  `json:"name"`
			Template batchv1.JobTemplateSpec `json:"template"`
		} `json:"jobs,omitempty"`
		Limits corev1.ResourceList `json:"limits,omitempty"`
	} `json:"spec"`
}

func typedChange(_ context.Context, c *gopf.Change[*Typed]) error {
	c.Log.Info("handled", "jobs", len(c.Object.Spec.Jobs), "before", len(c.Old.Spec.Jobs))
	return nil
}

func typedReview(_ context.Context, r *gopf.Review[*Typed]) error {
	r.Log.Debug("reviewed", "jobs", len(r.Object.Spec.Jobs))
	return nil
}

func change(ctx context.Context, c *gopf.Change[gopf.Unstructured]) error {
	if name, _ := gopf.ValueAt[string](c, "spec.reads"); name != "" && c.Reason == gopf.Create {
		read, err := client.Get[gopf.Unstructured](ctx, c.API, name, client.Of(group+"targets"))
		if err != nil {
			return err
		}
		defer runtime.KeepAlive(read) // until the handler returns
	}
	if wait, _ := gopf.ValueAt[int](c, "spec.sleep"); wait > 0 && c.Reason == gopf.Create {
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(wait) * time.Second):
		}
	}
	if subs, _ := gopf.ValueAt[int](c, "spec.subs"); c.Reason == gopf.Create {
		for i := range subs {
			c.Sub(strconv.Itoa(i), func(context.Context, *gopf.Change[gopf.Unstructured]) error { return nil })
		}
	}
	size, _ := gopf.ValueAt[string](c, "spec.field")
	old, _ := c.OldValue()
	c.Log.Info("handled", "reason", c.Reason.String(), "old", old, "changes", len(c.Diff))
	c.SetResult(map[string]any{"field": size, "name": c.Object.GetName()})
	return nil
}

func tick(_ context.Context, t *gopf.Tick[gopf.Unstructured]) error {
	t.Patch.Set("status.ticked", true)
	return nil
}

func validate(_ context.Context, r *gopf.Review[gopf.Unstructured]) error {
	if deny, _ := gopf.ValueAt[bool](r, "spec.deny"); deny {
		return gopf.Deny("denied on request")
	}
	return nil
}

func mutate(_ context.Context, r *gopf.Review[gopf.Unstructured]) error {
	r.Patch.Label("reviewed", "true")
	return nil
}
