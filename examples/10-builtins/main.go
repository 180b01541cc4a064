// Command 10-builtins handles a kind that Kubernetes has built in: it kills every
// pod half a minute after the operator first saw it. Run it only where pods may be
// killed.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/cli"
)

// lifetime is the time that pods have. The variable LIFETIME changes it: "5s".
func lifetime() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("LIFETIME")); err == nil {
		return d
	}
	return 30 * time.Second
}

func main() {
	op := gopf.New()
	pods := gopf.For[*corev1.Pod](op, "v1/pods").When(ordinary)
	pods.On(gopf.Create|gopf.Resume, "pod_in_sight", podInSight)
	pods.OnDelete("pod_deleted", podDeleted)
	cli.Main(op)
}

// ordinary reports whether a pod is none of the system.
func ordinary(s *gopf.Subject[*corev1.Pod]) bool {
	return !strings.HasPrefix(s.Object.Namespace, "kube-")
}

// plan is kept in memory for each pod.
type plan struct{ killing *time.Timer }

func podInSight(_ context.Context, c *gopf.Change[*corev1.Pod]) error {
	c.Log.Info(fmt.Sprintf("=== Pod killing happens in %v.", lifetime()))
	gopf.Memo[plan](c).killing = time.AfterFunc(lifetime(), func() { kill(c.Log, c.API, c.Object) })
	return nil
}

func podDeleted(_ context.Context, c *gopf.Change[*corev1.Pod]) error {
	if killing := gopf.Memo[plan](c).killing; killing != nil && killing.Stop() {
		c.Log.Info("=== Pod killing is cancelled!")
	}
	return nil
}

func kill(log *slog.Logger, api gopf.Client, pod *corev1.Pod) {
	log.Info("=== Pod killing happens NOW!")
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := api.Delete(ctx, pod); err != nil {
		log.Error("The pod cannot be deleted.", "error", err)
	}
}
