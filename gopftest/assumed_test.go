package gopftest

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	server "gopf.dev/gopf/webhook"
)

const account = `apiVersion: v1
kind: ServiceAccount
metadata: {name: rooms, namespace: ops}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: rooms}
rules:
  - {apiGroups: [example.com], resources: [rooms, rooms/status], verbs: [get, list, watch, patch]}
  - {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [list, watch]}
  - {apiGroups: [""], resources: [namespaces], verbs: [list, watch]}
  - {apiGroups: [""], resources: [events], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: rooms}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: rooms}
subjects: [{kind: ServiceAccount, name: rooms, namespace: ops}]
`

// witness records the failures of a test instead of failing.
type witness struct {
	testing.TB
	mu     sync.Mutex
	errors []string
}

func (w *witness) Error(args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range args {
		w.errors = append(w.errors, a.(string))
	}
}

func (w *witness) said() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.errors, "\n")
}

// rooms returns an operator whose handler applies a config map, and the paths of the
// manifest and of the report.
func rooms(t *testing.T, manifest string) (op *gopf.Operator, report string) {
	t.Helper()
	dir := t.TempDir()
	report = filepath.Join(dir, "used")
	if err := os.WriteFile(filepath.Join(dir, "rbac.yaml"), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(asVariable, filepath.Join(dir, "rbac.yaml"))
	t.Setenv(usedVariable, report)
	op = gopf.New(gopf.Identity("rooms.example.com"))
	op.Settings.Peering.Standalone = true
	op.Resource("example.com/v1/rooms").OnCreate("furnish", func(ctx context.Context, c *gopf.Change[gopf.Unstructured]) error {
		err := c.API.Apply(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "chair"}})
		if err != nil {
			return gopf.Permanent(err)
		}
		c.Patch.Set("status.furnished", true)
		return nil
	})
	return op, report
}

func room() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Room", "metadata": map[string]any{"name": "a", "namespace": "default"}}}
}

// await waits until the function returns true.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

func TestARequestThatTheManifestDoesNotGrantFailsTheTest(t *testing.T) {
	op, _ := rooms(t, account)
	cluster := NewCluster(t, "example.com/v1/rooms", "v1/configmaps")
	w := &witness{TB: t}
	Start(w, op, cluster)
	cluster.Create(t, room())
	await(t, "the test fails", func() bool { return w.said() != "" })
	if got := w.said(); !strings.Contains(got, "patch configmaps is not granted (handler furnish at gopftest/assumed_test.go:") || !strings.Contains(got, `gopf.May("patch")`) {
		t.Errorf("got %q", got)
	}
}

func TestAnApplyThatCreatesNeedsBothPermissions(t *testing.T) {
	rule := "\n  - {apiGroups: [\"\"], resources: [configmaps], verbs: [patch]}"
	op, _ := rooms(t, strings.Replace(account, "rules:", "rules:"+rule, 1))
	cluster := NewCluster(t, "example.com/v1/rooms", "v1/configmaps")
	w := &witness{TB: t}
	Start(w, op, cluster)
	cluster.Create(t, room())
	await(t, "the test fails", func() bool { return w.said() != "" })
	if got := w.said(); !strings.Contains(got, "create configmaps is not granted (handler furnish") {
		t.Errorf("got %q", got)
	}
}

func TestUsedPermissionsAreReported(t *testing.T) {
	rule := "\n  - {apiGroups: [\"\"], resources: [configmaps], verbs: [patch, create]}"
	op, report := rooms(t, strings.Replace(account, "rules:", "rules:"+rule, 1))
	cluster := NewCluster(t, "example.com/v1/rooms", "v1/configmaps")
	stop := Start(t, op, cluster)
	cluster.Create(t, room())
	await(t, "the room is furnished", func() bool {
		got, _, _ := unstructured.NestedBool(cluster.Get(t, "example.com/v1/rooms", "default", "a").Object, "status", "furnished")
		return got
	})
	stop()
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	got, called := map[string]string{}, ""
	for line := range strings.Lines(string(text)) {
		var u used
		if err := json.Unmarshal([]byte(line), &u); err != nil {
			t.Fatal(err)
		}
		if u.Denied || u.Test != t.Name() {
			t.Errorf("got %s", line)
		}
		if u.Verb == "" {
			called = u.Handler
			continue
		}
		got[u.Verb+" "+u.Resource] = u.Handler
	}
	for _, want := range []string{"watch rooms", "patch rooms/status", "watch customresourcedefinitions", "patch configmaps", "create configmaps"} {
		if _, ok := got[want]; !ok {
			t.Errorf("%q is not in %v", want, got)
		}
	}
	if !strings.HasPrefix(called, "furnish at ") {
		t.Errorf("the called handler is %q", called)
	}
	if got["create configmaps"] == "" || got["watch rooms"] != "" {
		t.Errorf("the handlers are %v", got)
	}
}

func TestLearningAllowsWhatIsNotGranted(t *testing.T) {
	t.Setenv(learnVariable, "1")
	op, report := rooms(t, account)
	cluster := NewCluster(t, "example.com/v1/rooms", "v1/configmaps")
	stop := Start(t, op, cluster)
	cluster.Create(t, room())
	await(t, "the config map exists", func() bool { return len(cluster.List(t, "v1/configmaps", "default")) == 1 })
	stop()
	if text, err := os.ReadFile(report); err != nil || !strings.Contains(string(text), `"resource":"configmaps","name":"chair","namespace":"default","handler":"furnish at gopftest/assumed_test.go:`) || !strings.Contains(string(text), `"denied":true`) {
		t.Errorf("got %s, %v", text, err)
	}
}

func TestCommandsActAsTheAccountOfTheManifest(t *testing.T) {
	op, report := rooms(t, account)
	cluster := NewCluster(t, "example.com/v1/rooms", "v1/configmaps")
	program := RunCommand(t, op, cluster, "run", "--all-namespaces")
	await(t, "the operator watches rooms", func() bool {
		text, _ := os.ReadFile(report)
		return strings.Contains(string(text), `"verb":"watch","group":"example.com","resource":"rooms"`)
	})
	if code := program.Stop(); code != 0 {
		t.Errorf("the exit code is %d", code)
	}
}

// In a cluster, the manifests create the webhook configuration empty.
func TestAnAccountThatMayNotCreateWebhookConfigurationsChangesThoseOfTheManifest(t *testing.T) {
	rules := `
  - {apiGroups: [""], resources: [configmaps], verbs: [patch, create]}
  - {apiGroups: [admissionregistration.k8s.io], resources: [validatingwebhookconfigurations, mutatingwebhookconfigurations], verbs: [get, list, watch, patch]}`
	op, _ := rooms(t, strings.Replace(account, "rules:", "rules:"+rules, 1))
	op.Settings.Admission.Server, op.Settings.Admission.Managed = server.Auto{}, "rooms.example.com"
	op.Resource("example.com/v1/rooms").Validate("check", func(context.Context, *gopf.Review[gopf.Unstructured]) error { return nil })
	const configuration = "kind: Deployment\nmetadata: {name: rooms}\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: rooms.example.com}\n"
	path := filepath.Join(filepath.Dir(os.Getenv(asVariable)), "operator.yaml")
	if err := os.WriteFile(path, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	cluster := NewCluster(t, "example.com/v1/rooms", "v1/configmaps")
	Start(t, op, cluster)
	configured := func() bool {
		o := cluster.Get(t, "admissionregistration.k8s.io/v1/validatingwebhookconfigurations", "", "rooms.example.com")
		hooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
		return len(hooks) == 1
	}
	await(t, "the webhook is configured", configured)
	if cluster.furnish(t, path); !configured() {
		t.Error("the next operator of the test loses the webhook")
	}
}
