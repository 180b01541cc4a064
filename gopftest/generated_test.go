package gopftest

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/deploy"
	server "gopf.dev/gopf/webhook"
)

// The operator maintains a webhook configuration that the manifests create empty. Its role
// permits no more than that: not even the creation of one.
func TestGeneratedPermissionsSufficeForWebhooksAndElection(t *testing.T) {
	op := gopf.New(gopf.Identity("rooms.example.com"))
	op.Settings.Admission.Server = server.Service{Name: "rooms"}
	op.Settings.Admission.Managed = "rooms.example.com"
	op.Settings.Election.Enabled, op.Settings.Election.Namespace = true, "ops"
	op.Settings.Peering.Standalone = true
	op.Resource("example.com/v1/rooms").Validate("check", func(context.Context, *gopf.Review[gopf.Unstructured]) error { return nil })
	d, err := gopf.TestSeam{}.Describe(op)
	if err != nil {
		t.Fatal(err)
	}
	options, err := deploy.ReadOptions("none", "rooms")
	if err != nil {
		t.Fatal(err)
	}
	options.Namespace = "ops"
	m := deploy.NewModel(options, d, nil)
	path := filepath.Join(t.TempDir(), "rbac.yaml")
	if err := os.WriteFile(path, m.Access(), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(asVariable, path)

	cluster := NewCluster(t, "example.com/v1/rooms", "v1/secrets")
	cluster.CreateNamespace(t, "ops")
	created := 0
	for _, o := range m.Workload() {
		if slices.Contains([]string{"ValidatingWebhookConfiguration", "Secret"}, o["kind"].(string)) {
			cluster.Create(t, &unstructured.Unstructured{Object: o})
			created++
		}
	}
	if created != 2 {
		t.Fatalf("created %d objects", created)
	}
	Start(t, op, cluster)
	await(t, "the webhooks are configured", func() bool {
		o := cluster.Get(t, "admissionregistration.k8s.io/v1/validatingwebhookconfigurations", "", "rooms.example.com")
		hooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
		return len(hooks) == 1
	})
	await(t, "the operator leads", func() bool { return len(cluster.List(t, "coordination.k8s.io/v1/leases", "ops")) == 1 })
}
