// Command 16-indexing keeps indices of pods in memory. Other handlers look them up
// without a request to the API server.
package main

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf"
	"gopf.dev/gopf/cli"
)

// label is a key of an index. Any comparable type may be a key.
type label struct{ key, value string }

func main() {
	op := gopf.New()
	pods := gopf.For[*corev1.Pod](op, "v1/pods")
	o := overview{
		running: gopf.Index(pods, "is_running", isRunning),
		labels:  gopf.Index(pods, "by_label", byLabel),
	}
	op.OnProbe("pod_count", o.count)
	op.OnProbe("pod_names", o.names)
	op.Resource("kex").Timer("intervalled", 5*time.Second, o.report)
	cli.Main(op)
}

// isRunning returns the index entry of one pod. An empty map would remove the pod from
// the index.
func isRunning(_ context.Context, s *gopf.Subject[*corev1.Pod]) (map[types.NamespacedName]bool, error) {
	name := types.NamespacedName{Namespace: s.Object.Namespace, Name: s.Object.Name}
	return map[types.NamespacedName]bool{name: s.Object.Status.Phase == corev1.PodRunning}, nil
}

// byLabel indexes a pod under each of its labels. Many pods may have the same label.
func byLabel(_ context.Context, s *gopf.Subject[*corev1.Pod]) (map[label]string, error) {
	found := map[label]string{}
	for key, value := range s.Object.Labels {
		found[label{key, value}] = s.Object.Name
	}
	return found, nil
}

// overview is a set of indices of pods, for the handlers.
type overview struct {
	running *gopf.IndexOf[types.NamespacedName, bool]
	labels  *gopf.IndexOf[label, string]
}

func (o overview) count(context.Context, *gopf.Activity) (any, error) { return o.running.Len(), nil }

func (o overview) names(context.Context, *gopf.Activity) (any, error) {
	names := []string{}
	for name := range o.running.Keys() {
		names = append(names, name.Name)
	}
	slices.Sort(names)
	return names, nil
}

// report writes the running pods of the object's namespace and of kube-system into the
// status of the object, and logs the index of labels.
func (o overview) report(_ context.Context, t *gopf.Tick[gopf.Unstructured]) error {
	running := []string{}
	for name, is := range o.running.All() {
		if is && (name.Namespace == "kube-system" || name.Namespace == t.Object.GetNamespace()) {
			running = append(running, name.Namespace+"::"+name.Name)
		}
	}
	slices.Sort(running)
	for key := range o.labels.Keys() {
		t.Log.Debug("Pods by label.", "label", key.key, "value", key.value, "pods", slices.Sorted(o.labels.Get(key)))
	}
	alike := 0
	for key, value := range t.Object.GetLabels() {
		alike += o.labels.Count(label{key, value})
	}
	t.Patch.MergeStatus(map[string]any{"running-pods": running, "pods-with-these-labels": alike})
	return nil
}
