package side8

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf/internal/queue"
)

// The scripts of one namespace cannot have all processes.
func TestANamespaceLeavesProcessesToOthers(t *testing.T) {
	o := scriptsOf(t, "sleep 60", "echo done")
	s := &scripts{options: o, slots: queue.NewSlots(processes)}
	in := func(namespace string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a", "namespace": namespace}}}
	}
	slow, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 2 * processes {
		all.Go(func() { _, _ = s.run(slow, slog.New(slog.DiscardHandler), in("hostile"), o.Apply) })
	}
	time.Sleep(200 * time.Millisecond) // they have started, or wait
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	if got, err := s.run(ctx, slog.New(slog.DiscardHandler), in("other"), o.Delete); got != "done" || err != nil {
		t.Errorf("the script of another namespace: got %v, %v", got, err)
	}
	cancel()
	all.Wait()
}
