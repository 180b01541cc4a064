package stream

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/kind"
)

func TestAStreamOfARealCluster(t *testing.T) {
	path := os.Getenv("GOPF_TEST_KUBECONFIG")
	if path == "" {
		t.Skip("GOPF_TEST_KUBECONFIG names no cluster")
	}
	cfg, _, err := kube.LoadConfig(path, "")
	if err != nil {
		t.Fatal(err)
	}
	client, err := kube.NewClient(cfg, kube.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	namespaces := kind.Info{Version: "v1", Plural: "namespaces", Kind: "Namespace"}
	ns, err := client.Create(ctx, kube.Target{Info: namespaces}, []byte(`{"metadata":{"generateName":"stream-test-"}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Delete(context.WithoutCancel(ctx), kube.Target{Info: namespaces, Name: ns.Name}, kube.DeleteOptions{UID: ns.UID})
	info := kind.Info{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true}
	object := func(name string) kube.Target { return kube.Target{Info: info, Namespace: ns.Name, Name: name} }
	create := func(name string) {
		t.Helper()
		body := fmt.Appendf(nil, `{"metadata":{"name":%q,"labels":{"own":"yes"}}}`, name)
		if _, err := client.Create(ctx, object(""), body); err != nil {
			t.Fatal(err)
		}
	}
	create("a")

	config := DefaultConfig(info, ns.Name)
	config.Selector = "own=yes"
	config.ClientTimeout = 500 * time.Millisecond // reconnects all the time
	events := make(chan Event)
	stopped := make(chan error, 1)
	runCtx, stop := context.WithCancel(ctx)
	go func() { stopped <- New(client, config).Run(runCtx, func(e Event) { events <- e }) }()
	var got []string
	take := func() {
		select {
		case e := <-events:
			if e.Body == nil {
				got = append(got, e.Type.String())
			} else {
				got = append(got, e.Type.String()+" "+e.Body.Name)
			}
		case <-ctx.Done():
			t.Fatalf("no more events; so far: %q", got)
		}
	}
	take()
	take()
	for i := range 10 {
		create(fmt.Sprint("b", i))
		time.Sleep(100 * time.Millisecond)
		take()
	}
	if _, err := client.Patch(ctx, object("a"), types.MergePatchType, []byte(`{"data":{"k":"v"}}`)); err != nil {
		t.Fatal(err)
	}
	take()
	if err := client.Delete(ctx, object("a"), kube.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	take()
	stop()
	if err := <-stopped; err == nil {
		t.Error("Run ended without an error")
	}
	want := []string{"LISTED a", "SYNCED", "ADDED b0", "ADDED b1", "ADDED b2", "ADDED b3", "ADDED b4", "ADDED b5", "ADDED b6", "ADDED b7", "ADDED b8", "ADDED b9",
		"MODIFIED a", "DELETED a"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events: -want +got\n%s", diff)
	}
}
