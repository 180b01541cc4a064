// Command 13-hooks has handlers for the life cycle of the operator itself: startup,
// login, health probes and cleanup.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf"
	"gopf.dev/gopf/cli"
)

func main() {
	op := gopf.New()
	t := &tasks{stop: make(chan struct{}), of: map[types.NamespacedName]bool{}}
	op.OnStartup("startup_fn_simple", startSimply)
	op.OnStartup("startup_fn_retried", startAtLast)
	op.OnCleanup("cleanup_fn", t.cleanup)
	op.OnLogin("login_fn", login, gopf.ErrorsPermanent())
	op.OnProbe("tasks_count", t.count)
	op.OnProbe("monitored_objects", t.names)
	gopf.For[*corev1.Pod](op, "v1/pods").OnEvent("pod_task", t.begin)
	cli.Main(op)
}

// startSimply changes the settings. They are fixed after the startup handlers.
func startSimply(_ context.Context, a *gopf.Activity) error {
	a.Settings.Posting.ReportingComponent = "hooks-example"
	a.Log.Info("Getting ready...")
	return nil
}

// startAtLast delays the start of the operator until it succeeds.
func startAtLast(_ context.Context, a *gopf.Activity) error {
	if a.Retry < 3 {
		return gopf.RetryAfter(time.Second, fmt.Errorf("going to succeed in %ds", 3-a.Retry))
	}
	a.Log.Info("Ready at last.")
	return nil
}

// login uses the service account of the pod, or else the kubeconfig. It is called
// again when the credentials expire: after 30 s, or after the duration in the
// environment variable LOGIN_LIFETIME, such as "5s".
func login(ctx context.Context, a *gopf.Activity) (*gopf.Login, error) {
	lifetime, err := time.ParseDuration(os.Getenv("LOGIN_LIFETIME"))
	if err != nil {
		lifetime = 30 * time.Second
	}
	a.Log.Info("Logging in...")
	for _, method := range []func(context.Context, *gopf.Activity) (*gopf.Login, error){gopf.LoginWithServiceAccount(), gopf.LoginWithKubeconfig("", "")} {
		credentials, err := method(ctx, a)
		if err != nil {
			return nil, err
		}
		if credentials != nil {
			credentials.Expires = time.Now().Add(lifetime)
			return credentials, nil
		}
	}
	return nil, errors.New("there is neither a service account nor a kubeconfig")
}

// tasks are background goroutines, one per pod. They run until the operator stops.
type tasks struct {
	mu      sync.Mutex
	of      map[types.NamespacedName]bool
	stop    chan struct{}
	running sync.WaitGroup
}

// begin starts the task of a pod, once.
func (t *tasks) begin(_ context.Context, e *gopf.WatchEvent[*corev1.Pod]) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	name := types.NamespacedName{Namespace: e.Object.Namespace, Name: e.Object.Name}
	if !t.of[name] {
		t.of[name] = true
		t.running.Go(func() { t.serve(e.Log) })
	}
	return nil
}

func (t *tasks) serve(log *slog.Logger) {
	for {
		log.Info("Served by the background task.")
		select {
		case <-t.stop:
			log.Info("Serving is finished by request.")
			return
		case <-time.After(5 * time.Second):
		}
	}
}

// cleanup is called after all other handlers have stopped.
func (t *tasks) cleanup(_ context.Context, a *gopf.Activity) error {
	a.Log.Info("Cleaning up...")
	a.Log.Info("Stopping all background tasks.")
	close(t.stop)
	t.running.Wait()
	return nil
}

// count and names are probes: the liveness endpoint returns their results.
func (t *tasks) count(context.Context, *gopf.Activity) (any, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.of), nil
}

func (t *tasks) names(context.Context, *gopf.Activity) (any, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	byNamespace := map[string][]string{}
	for name := range t.of {
		byNamespace[name.Namespace] = append(byNamespace[name.Namespace], name.Name)
	}
	for _, names := range byNamespace {
		slices.Sort(names)
	}
	return byNamespace, nil
}
