package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/dev/manifests"
)

// place is the location of the peerings of a test.
type place struct {
	t         *testing.T
	client    dynamic.Interface
	namespace string
}

// cluster is a real control plane, if the tests run with one. It has the resources of
// peering.yaml, and a namespace for the test.
func cluster(t *testing.T) place {
	t.Helper()
	path := os.Getenv("GOPF_TEST_KUBECONFIG")
	if path == "" {
		t.Skip("GOPF_TEST_KUBECONFIG names no cluster")
	}
	t.Setenv("KUBECONFIG", path)
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := manifests.Read("../peering.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := manifests.Apply(t.Context(), config, objects, func(manifests.Object) {}); err != nil {
		t.Fatal(err)
	}
	p := place{t: t, client: dynamic.NewForConfigOrDie(config)}
	p.namespace = p.create(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "", &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"generateName": "cli-test-"}}})
	return p
}

func (p place) create(resource schema.GroupVersionResource, ns string, o *unstructured.Unstructured) (name string) {
	p.t.Helper()
	var client dynamic.ResourceInterface = p.client.Resource(resource)
	if ns != "" {
		client = p.client.Resource(resource).Namespace(ns)
	}
	created, err := client.Create(p.t.Context(), o, metav1.CreateOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if err := client.Delete(context.Background(), created.GetName(), metav1.DeleteOptions{}); err != nil {
			p.t.Error(err)
		}
	})
	return created.GetName()
}

// peering creates a peering in the namespace or in the cluster, and returns a function that
// reads its records.
func (p place) peering(kind, name string) (records func() map[string]any) {
	p.t.Helper()
	resource := schema.GroupVersionResource{Group: "kopf.dev", Version: "v1", Resource: strings.ToLower(kind) + "s"}
	ns := p.namespace
	if strings.HasPrefix(kind, "Cluster") {
		ns = ""
	}
	p.create(resource, ns, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kopf.dev/v1", "kind": kind, "metadata": map[string]any{"name": name}}})
	return func() map[string]any {
		p.t.Helper()
		o, err := p.client.Resource(resource).Namespace(ns).Get(p.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			p.t.Fatal(err)
		}
		status, _, _ := unstructured.NestedMap(o.Object, "status")
		for _, r := range status {
			if record, isMap := r.(map[string]any); isMap {
				delete(record, "lastseen")
			}
		}
		return status
	}
}

// does runs a command, which must succeed.
func (p place) does(args ...string) (log string) {
	p.t.Helper()
	code, log := p.tries(args...)
	if code != ok {
		p.t.Fatalf("%q: got exit code %d: %s", args, code, log)
	}
	return log
}

func (p place) tries(args ...string) (code int, log string) {
	p.t.Helper()
	var stdout, stderr bytes.Buffer
	code = Run(p.t.Context(), gopf.New(), args, &stdout, &stderr)
	if stdout.Len() > 0 {
		p.t.Errorf("got %q on stdout", stdout.String())
	}
	return code, stderr.String()
}

func TestPeersAreFrozenAndResumed(t *testing.T) {
	p := cluster(t)
	t.Setenv("POD_ID", "")
	t.Setenv("LOGNAME", "somebody")
	scopes := map[string]struct {
		kind  string
		scope []string
	}{
		"in a namespace": {"KopfPeering", []string{"-n", p.namespace}},
		"by a pattern":   {"KopfPeering", []string{"-n", p.namespace[:len(p.namespace)-1] + "?"}},
		"everywhere":     {"ClusterKopfPeering", []string{"-A"}},
		"by default":     {"ClusterKopfPeering", nil},
	}
	for name, c := range scopes {
		t.Run(name, func(t *testing.T) {
			p := place{t, p.client, p.namespace}
			name := strings.ReplaceAll(p.namespace+"-"+strings.ToLower(name), " ", "-")
			records := p.peering(c.kind, name)
			scoped := func(args ...string) []string { return append(append(args, "-P", name), c.scope...) }

			log := p.does(scoped("freeze", "-i", "me", "-t", "60", "-m", "moving the data")...)
			if diff := cmp.Diff(map[string]any{"me": map[string]any{"priority": int64(100), "lifetime": int64(60)}}, records()); diff != "" {
				t.Errorf("frozen: -want +got\n%s", diff)
			}
			if want := `The operators are frozen. peering=` + name + ` priority=100 lifetime=1m0s why="moving the data"`; !strings.Contains(log, want) {
				t.Errorf("got %q, want %q", log, want)
			}
			if got := strings.Contains(log, "Neither --all-namespaces nor --namespace is given"); got != (c.scope == nil) {
				t.Errorf("got %q", log)
			}
			p.does(scoped("freeze", "-t", "10m", "--dev", "-p", "5")...)
			for id, r := range records() {
				if id == "me" {
					continue
				}
				if diff := cmp.Diff(map[string]any{"priority": int64(666), "lifetime": int64(600)}, r); diff != "" || !strings.HasPrefix(id, "somebody@") {
					t.Errorf("%s: -want +got\n%s", id, diff)
				}
			}
			p.does(scoped("resume", "-i", "me")...)
			if _, found := records()["me"]; found || len(records()) != 1 {
				t.Errorf("resumed: got %v", records())
			}
			p.does(scoped("resume")...)
			if len(records()) != 0 {
				t.Errorf("resumed: got %v", records())
			}
		})
	}
}

func TestPeeringsThatAreMissingAreErrors(t *testing.T) {
	p := cluster(t)
	for _, args := range [][]string{{"freeze", "-A", "-t", "1"}, {"resume", "-A"}, {"freeze", "-n", p.namespace, "-t", "1"}, {"resume", "-n", p.namespace}} {
		code, log := p.tries(append(args, "--peering", "no-such-peering", "-q")...)
		if code != failed || !strings.HasPrefix(log, "Error: ") || !strings.Contains(log, "no-such-peering") {
			t.Errorf("%q: got %d and %q", args, code, log)
		}
	}
}

func TestTheOperatorServesUntilItIsStopped(t *testing.T) {
	p := cluster(t)
	records := p.peering("KopfPeering", "served")
	ctx, cancel := context.WithCancelCause(t.Context())
	var stderr buffer
	ended := make(chan int)
	args := []string{"run", "-n", p.namespace, "-P", "served", "-p", "7", "--log-format=json"}
	t.Setenv("POD_ID", "this-pod")
	go func() { ended <- Run(ctx, gopf.New(), args, &stderr, &stderr) }()
	want := map[string]any{"this-pod": map[string]any{"priority": int64(7), "lifetime": int64(60)}}
	for deadline := time.Now().Add(time.Minute); !cmp.Equal(want, records()); {
		if time.Now().After(deadline) {
			t.Fatalf("got %v: %s", records(), stderr.String())
		}
	}
	cancel(&signalError{os.Interrupt})
	if code := <-ended; code != ok {
		t.Errorf("got exit code %d: %s", code, stderr.String())
	}
	if len(records()) > 0 {
		t.Errorf("leftover records: %v", records())
	}
	told := 0
	for line := range strings.Lines(stderr.String()) {
		var fields struct{ Message, Severity string }
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Errorf("%v: %s", err, line)
		}
		if fields.Message == "Signal SIGINT is received. Operator is stopping." && fields.Severity == "info" {
			told++
		}
	}
	if told != 1 {
		t.Errorf("it logged %d times that it stops: %s", told, stderr.String())
	}
}
