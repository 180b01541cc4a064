package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/test/e2e/kit"
)

// podsIn are the pods of a namespace. Nothing runs in them: there are no nodes.
func podsIn(t *testing.T, namespace string) objects {
	return objects{t, namespace, "Pod", schema.GroupVersionResource{Version: "v1", Resource: "pods"}}
}

func pod(labels map[string]any) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"labels": labels},
		"spec": map[string]any{
			"terminationGracePeriodSeconds": int64(0),
			"containers":                    []any{map[string]any{"name": "main", "image": "busybox"}},
		},
	}
}

func podsAreKilledUnlessTheyAreDeleted(t *testing.T, executable string) {
	p, objects := startExample(t, executable)
	pods := podsIn(t, objects.namespace)
	pods.create("victim", pod(nil))
	prefix := "[" + objects.namespace + "/victim] "
	p.Log.WaitFor(t, prefix+"Creation is in progress:")
	p.Log.WaitFor(t, prefix+"=== Pod killing happens in 30s.")
	p.Log.WaitFor(t, prefix+"Creation is processed:")
	pods.delete("victim")
	p.Log.WaitFor(t, prefix+"Deletion is in progress:")
	p.Log.WaitFor(t, prefix+"=== Pod killing is cancelled!")
	kit.Await(t, "the pod is gone", func() bool { return pods.get("victim") == nil })
	p.end(t)
	p.checkFailures(t, behaviour{})

	// Pods that nobody deletes are killed; also those that are older than the operator.
	pods.create("older", pod(nil))
	args := []string{"run", "--namespace", objects.namespace, "--standalone", "--verbose"}
	p = start(t, executable, []string{"LIFETIME=1s"}, args...)
	pods.create("newer", pod(nil))
	for _, name := range []string{"older", "newer"} {
		prefix := "[" + objects.namespace + "/" + name + "] "
		p.Log.WaitFor(t, prefix+"=== Pod killing happens in 1s.")
		p.Log.WaitFor(t, prefix+"=== Pod killing happens NOW!")
		kit.Await(t, "the pod is killed", func() bool { return pods.get(name) == nil })
	}
	p.end(t)
	if lines := p.Log.With("=== Pod killing is cancelled!"); len(lines) > 0 {
		t.Errorf("killed pods are taken for deleted ones: %q", lines)
	}
	p.checkFailures(t, behaviour{})
}

// daemonsFailThreeTimesAndThenRun also checks the status that a daemon writes, and
// that the annotation decides about the other one.
func daemonsFailThreeTimesAndThenRun(t *testing.T, executable string) {
	p, objects := startExample(t, executable)
	prefix := createExample(objects)
	p.Log.WaitFor(t, prefix+"=> Ping from a daemon. field=value retry=3")
	p.Log.WaitFor(t, prefix+"=> Ping from another daemon. field=value")
	for _, id := range []string{"background_sync", "background_async"} {
		if lines := p.Log.With(prefix, "'"+id+"' failed temporarily: a simulated failure"); len(lines) != 3 {
			t.Errorf("%s failed %d times: %q", id, len(lines), lines)
		}
	}
	kit.Await(t, "the daemon writes the status", func() bool {
		return field(objects.get("kopf-example-1"), "status", "message") == "Failed 3 times."
	})

	objects.merge("kopf-example-1", `{"metadata": {"annotations": {"someannotation": null}}}`)
	p.Log.WaitFor(t, prefix+"=> The other daemon stops.")
	p.Log.WaitFor(t, prefix+"Daemon 'background_async' has exited on request")
	objects.delete("kopf-example-1")
	p.Log.WaitFor(t, prefix+"Daemon 'background_sync' has exited on request")
	p.Log.WaitFor(t, prefix+"Deleted, really deleted")
	p.end(t)
	p.checkFailures(t, behaviour{errors: true})
}

func timersWaitUntilObjectsAreIdle(t *testing.T, executable string) {
	p, objects := startExample(t, executable)
	prefix := createExample(objects)
	for _, line := range []string{"Ping from a timer. field=value", "Ping from another timer. field=value"} {
		p.Log.WaitFor(t, prefix+line)
	}
	kit.Await(t, "a timer is called again", func() bool { return len(p.Log.With(prefix+"Ping from a timer. field=value")) > 1 })

	changed := time.Now()
	objects.merge("kopf-example-1", `{"spec": {"field": "changed"}}`)
	p.Log.WaitFor(t, prefix+"Ping from a timer. field=changed")
	if idle := time.Since(changed); idle < 5*time.Second {
		t.Errorf("the timer is called %v after a change", idle)
	}
	objects.delete("kopf-example-1")
	p.Log.WaitFor(t, prefix+"Deleted, really deleted")
	p.end(t)
	p.checkFailures(t, behaviour{})
}

func onlyFittingHandlersAreCalled(t *testing.T, executable string) {
	p, objects := startExample(t, executable)
	prefix := createExample(objects)
	p.Log.WaitFor(t, prefix+"Creation is processed:")
	p.Log.WaitFor(t, prefix+"Field daemon is satisfied.")
	objects.merge("kopf-example-1", `{"spec": {"field": "changed"}}`)
	p.Log.WaitFor(t, prefix+"Field change is satisfied.")
	p.Log.WaitFor(t, prefix+"Daemon 'daemon_with_field/spec.field' has exited on request")
	objects.delete("kopf-example-1")
	p.Log.WaitFor(t, prefix+"Deleted, really deleted")
	p.end(t)
	p.checkFailures(t, behaviour{})
	for line, wanted := range map[string]bool{
		"Label is matching.":               true,
		"Label is present.":                true,
		"Label is absent.":                 true,
		"Label callback matching.":         true,
		"Annotation is matching.":          true,
		"Annotation is present.":           true,
		"Annotation is absent.":            true,
		"Annotation callback mismatch.":    false,
		"Filter satisfied.":                true,
		"Filter not satisfied.":            false,
		"Field value is satisfied.":        true,
		"Field value is not satisfied.":    false,
		"Field presence is satisfied.":     true,
		"Field presence is not satisfied.": false,
		"Field change is satisfied.":       true,
	} {
		if got := len(p.Log.With(prefix + line)); (got == 1) != wanted || got > 1 {
			t.Errorf("%q is logged %d times", line, got)
		}
	}
}

func theApplicationRunsItsOperator(t *testing.T, executable string) {
	ns := namespace(t)
	p := start(t, executable, nil, "--namespace", ns)
	if code := p.Wait(); code != 0 {
		t.Errorf("got exit code %d", code)
	}
	for _, line := range []string{
		"The application starts.", "The application works: step 1 of 3.", "The application works: step 3 of 3.",
		"The application stops its operator.", "Objects greeted: 3",
	} {
		if len(p.Log.With(line)) != 1 {
			t.Errorf("it does not say %q once", line)
		}
	}
	for step := range 3 {
		prefix := fmt.Sprintf("[%s/kopf-example-%d] ", ns, step)
		name := fmt.Sprintf("kopf-example-%d", step)
		for _, line := range []string{"Hello, " + name + "!", "Good bye, " + name + "!"} {
			if len(p.Log.With(prefix+line)) != 1 {
				t.Errorf("there is no line %q", prefix+line)
			}
		}
		if examples(t, ns).get(fmt.Sprintf("kopf-example-%d", step)) != nil {
			t.Errorf("object %d is still there", step)
		}
	}
	p.checkFailures(t, behaviour{})
}

func hooksAreCalledInTheLifeOfTheOperator(t *testing.T, executable string) {
	liveness := "http://" + kit.FreeAddress(t) + "/healthz"
	p, objects := startExampleWith(t, executable, []string{"LOGIN_LIFETIME=2s"}, "--liveness", liveness)
	podsIn(t, objects.namespace).create("a-pod", pod(nil))
	p.Log.WaitFor(t, "["+objects.namespace+"/a-pod] Served by the background task.")

	wanted := map[string]any{"tasks_count": 1.0, "monitored_objects": map[string]any{objects.namespace: []any{"a-pod"}}}
	if diff := cmp.Diff(wanted, probes(t, liveness)); diff != "" {
		t.Errorf("probes: -want +got\n%s", diff)
	}
	kit.Await(t, "it logs in again when the credentials expire", func() bool { return len(p.Log.With("Logging in...")) > 1 })
	p.end(t)
	for left := range 3 {
		if line := fmt.Sprintf("going to succeed in %ds", left+1); len(p.Log.With("'startup_fn_retried'", line)) != 1 {
			t.Errorf("there is no line %q", line)
		}
	}
	counts := map[string]int{"startup_fn_simple": 1, "startup_fn_retried": 1, "cleanup_fn": 1}
	if diff := cmp.Diff(counts, p.successes(counts)); diff != "" {
		t.Errorf("handlers that succeeded: -want +got\n%s", diff)
	}
	if len(p.Log.With("Serving is finished by request.")) != 1 {
		t.Error("the cleanup has not waited for the task")
	}
	p.checkFailures(t, behaviour{errors: true})
}

func indicesFollowPods(t *testing.T, executable string) {
	liveness := "http://" + kit.FreeAddress(t) + "/healthz"
	p, objects := startExample(t, executable, "--liveness", liveness)
	pods := podsIn(t, objects.namespace)
	labels := map[string]any{"somelabel": "somevalue"}
	pods.create("running", pod(labels))
	pods.mergeStatus("running", `{"status": {"phase": "Running"}}`)
	pods.create("pending", pod(labels))
	createExample(objects)
	kit.Await(t, "the status tells of the pods", func() bool {
		status := objects.get("kopf-example-1").Object["status"]
		wanted := map[string]any{"running-pods": []any{objects.namespace + "::running"}, "pods-with-these-labels": int64(2)}
		return cmp.Equal(status, any(wanted))
	})
	wanted := map[string]any{"pod_count": 2.0, "pod_names": []any{"pending", "running"}}
	if diff := cmp.Diff(wanted, probes(t, liveness)); diff != "" {
		t.Errorf("probes: -want +got\n%s", diff)
	}
	p.Log.WaitFor(t, "Pods by label. label=somelabel value=somevalue", "pending", "running")
	objects.delete("kopf-example-1")
	kit.Await(t, "the object is gone", func() bool { return objects.get("kopf-example-1") == nil })
	p.end(t)
	p.checkFailures(t, behaviour{})
}

func aChildIsDeletedWithItsOwner(t *testing.T, executable string) {
	p, objects := startExample(t, executable)
	prefix := createExample(objects)
	p.Log.WaitFor(t, prefix+"Creation is in progress:")
	parent := objects.awaitHandled("kopf-example-1")
	children, _, _ := unstructured.NestedStringSlice(parent.Object, "status", "create_fn", "children")
	pods := podsIn(t, objects.namespace).list()
	if len(pods) != 1 || len(children) != 1 || string(pods[0].GetUID()) != children[0] {
		t.Fatalf("pods are %v, but the status says %v", pods, children)
	}
	containers, _, _ := unstructured.NestedSlice(pods[0].Object, "spec", "containers")
	env := containers[0].(map[string]any)["env"]
	if want := []any{map[string]any{"name": "FIELD", "value": "value"}, map[string]any{"name": "DURATION", "value": "1m"}}; !cmp.Equal(env, any(want)) {
		t.Errorf("the environment of the pod is %v", env)
	}
	if name := pods[0].GetName(); !strings.HasPrefix(name, "kopf-example-1-") || pods[0].GetLabels()["somelabel"] != "somevalue" {
		t.Errorf("the pod does not look like its owner's: %s, %v", name, pods[0].GetLabels())
	}
	objects.delete("kopf-example-1")
	p.Log.WaitFor(t, prefix+"Deleted, really deleted")
	podsIn(t, objects.namespace).awaitCollected(pods[0].GetName())
	p.end(t)
	counts := map[string]int{"create_fn": 1}
	if diff := cmp.Diff(counts, p.successes(counts)); diff != "" {
		t.Errorf("handlers that succeeded: -want +got\n%s", diff)
	}
	p.checkFailures(t, behaviour{})
}

// onePeerWorksAtATime runs the example alone, as generic examples are, and then
// twice in one peering.
func onePeerWorksAtATime(t *testing.T, executable string) {
	behaviour{succeed: map[string]int{"create_fn": 1}}.check(t, executable)

	apply(t, "../../../peering.yaml")
	objects := examples(t, namespace(t))
	peerings := objects
	peerings.kind, peerings.resource.Resource = "KopfPeering", "kopfpeerings"
	peerings.create("example", nil)
	run := func(args ...string) *process {
		args = append([]string{"run", "--namespace", objects.namespace, "--peering=example", "--verbose"}, args...)
		return start(t, executable, nil, args...)
	}
	handledBy := func(p *process, name string) func() bool {
		return func() bool { return len(p.Log.With("/"+name+"] ", "Handled by this operator.")) == 1 }
	}
	usual := run()
	objects.create("first", nil)
	kit.Await(t, "the first object is handled", handledBy(usual, "first"))

	special := run("--dev")
	usual.Log.WaitFor(t, "Pausing operations in favour of")
	objects.create("second", nil)
	kit.Await(t, "the second object is handled by the other one", handledBy(special, "second"))

	special.end(t)
	objects.create("third", nil)
	kit.Await(t, "the third object is handled by the first one again", handledBy(usual, "third"))
	usual.end(t)
	if handledBy(usual, "second")() {
		t.Error("the operator that should have paused has handled an object")
	}
}

// TestTheTestsOfExamplesPass runs the tests that examples have beside their code.
func TestTheTestsOfExamplesPass(t *testing.T) {
	t.Parallel()
	modules, err := filepath.Glob("../../../examples/*/go.mod")
	if err != nil || len(modules) != 5 {
		t.Fatalf("examples with tests: %v (%v)", modules, err)
	}
	for _, module := range modules {
		cmd := exec.Command("go", "test", "-count=1", "./...")
		cmd.Dir = filepath.Dir(module)
		cmd.Env = append(cmd.Environ(), "GOPF_TEST_KUBECONFIG="+kubeconfig)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("go test in %s: %v\n%s", cmd.Dir, err, out)
		}
	}
}

// probes are the results of an operator's probes.
func probes(t *testing.T, url string) (results map[string]any) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil {
		err = json.Unmarshal(body, &results)
	}
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("got %s: %s (%v)", answer.Status, body, err)
	}
	return results
}
