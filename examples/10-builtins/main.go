// Command 10-builtins handles a built-in kind: it deletes every pod 30 seconds after
// it first sees it. Do not run it in a cluster whose pods you need.
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
	"gopf.dev/gopf/client"
)

// lifetime returns the time after which a pod is deleted. Default: 30 s. The
// environment variable LIFETIME, such as "5s", changes it.
func lifetime() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("LIFETIME")); err == nil {
		return d
	}
	return 30 * time.Second
}

func main() {
	op := gopf.New()
	gopf.RegisterType[*corev1.Pod](op, "v1/pods", gopf.May("delete")) // for 'gopf manifests'
	pods := gopf.For[*corev1.Pod](op, "v1/pods").When(ordinary)
	pods.On(gopf.Create|gopf.Resume, "pod_in_sight", podInSight)
	pods.OnDelete("pod_deleted", podDeleted)
	cli.Main(op)
}

// ordinary reports whether the pod is not in a system namespace.
func ordinary(s *gopf.Candidate[*corev1.Pod]) bool {
	return !strings.HasPrefix(s.Object.Namespace, "kube-")
}

// plan is the memo of a pod: in-memory data that is kept as long as the pod exists.
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

func kill(log *slog.Logger, api client.Client, pod *corev1.Pod) {
	log.Info("=== Pod killing happens NOW!")
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := api.Delete(ctx, pod); err != nil {
		log.Error("The pod cannot be deleted.", "error", err)
	}
}
