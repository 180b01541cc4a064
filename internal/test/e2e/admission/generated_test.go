package admission_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/deploy"
	"gopf.dev/gopf/internal/dev/manifests"
	"gopf.dev/gopf/internal/test/e2e/kit"
	"gopf.dev/gopf/webhook"
)

// applyGenerated applies the generated manifests of the operator, without its Deployment.
func (w *world) applyGenerated(op *gopf.Operator, name string) {
	w.t.Helper()
	d, err := gopf.TestSeam{}.Describe(op)
	if err != nil {
		w.t.Fatal(err)
	}
	options := deploy.Options{Name: name, Namespace: w.namespace, Image: "none", Replicas: 1, Memory: "256Mi"}
	files, err := deploy.NewModel(options, d, nil).Files(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	dir := w.t.TempDir()
	for file, text := range files {
		docs := strings.Split(string(text), "\n---\n")
		docs = slices.DeleteFunc(docs, func(doc string) bool {
			return strings.Contains(doc, "\nkind: Deployment\n") || strings.Contains(doc, "\nkind: Namespace\n") || strings.Contains(doc, "\nkind: ValidatingAdmissionPolicy")
		})
		for i, doc := range docs {
			// No pods run here.
			if before, _, ok := strings.Cut(doc, "\nspec:\n"); ok && strings.Contains(doc, "\nkind: Service\n") && strings.Contains(doc, "- name: webhook\n") {
				docs[i] = before + "\nspec: {type: ExternalName, externalName: localhost}\n"
			}
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(strings.Join(docs, "\n---\n")), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	objects, err := manifests.Read(dir)
	if err == nil {
		err = manifests.Apply(w.ctx(), cluster, objects, nil)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		for _, plural := range []string{"clusterroles", "clusterrolebindings"} {
			w.remove(schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: plural}, "", name)
		}
	})
}

// The generated role is enough for an operator with webhooks, and has no permission to
// create Secrets or webhook configurations: empty ones are among the manifests.
func TestTheGeneratedManifestsAreEnoughForWebhooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	name, _, _ := strings.Cut(w.group, ".")
	port := freePort(t)
	op := gopf.New()
	op.Settings.Peering.Standalone = true
	op.Settings.Election.Enabled, op.Settings.Election.Name = true, name
	op.Settings.Admission.Managed = w.managed
	op.Settings.Admission.Server = webhook.Service{Name: "hooks", Port: port, Listen: webhook.Local{Addr: "127.0.0.1", Port: port}}
	x := gopf.For[*Thing](op, w.things())
	x.OnCreate("created", func(_ context.Context, c *gopf.Change[*Thing]) error {
		c.Event(gopf.Normal, "Created", "It is created.")
		return nil
	})
	x.Validate("check", func(_ context.Context, r *review) error {
		if r.Object.Spec.Field == "bad" {
			return gopf.Deny("%s", r.Object.Spec.Field)
		}
		return nil
	})
	x.Mutate("change", func(_ context.Context, r *review) error {
		if r.Object.Spec.Field == "" {
			r.Patch.Set("spec.field", "bad")
		}
		return nil
	})
	w.applyGenerated(op, name)
	account := w.token(name)
	op.OnLogin("login", func(context.Context, *gopf.Activity) (*gopf.Login, error) {
		return &gopf.Login{Config: account, Namespace: w.namespace}, nil
	})
	o := w.start(op, gopf.Cluster(nil))
	u := w.try(cluster)
	kit.Eventually(t, func() error {
		_, err := u.create("a", fields{}, dryRun)
		if err == nil || !strings.Contains(err.Error(), "denied the request: bad") {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
	secret := w.must(w.client(secrets, w.namespace).Get(w.ctx(), "hooks-webhook", metav1.GetOptions{}))
	if data, _ := secret.Object["data"].(fields); data["tls.key"] == nil || secret.GetLabels()["app.kubernetes.io/managed-by"] != "gopf" {
		t.Errorf("the generated Secret has no certificate: %v", secret.GetLabels())
	}
	w.must(u.create("b", spec(fields{"field": "good"})))
	o.Log.WaitFor(t, "Handler 'created' succeeded.")
	if o.Stop(); o.Err != nil {
		t.Error(o.Err)
	}
	for _, line := range slices.Concat(o.Log.With("A permission is missing."), o.Log.With("forbidden")) {
		t.Error(line)
	}
}
