package admission_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/dev/manifests"
	"gopf.dev/gopf/internal/test/e2e/kit"
	"gopf.dev/gopf/webhook"
)

// The permissions in the manual are enough for an operator in the cluster, without
// those for creations if all is there already.
func TestTheManifestsOfTheManualWork(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"created by the operator": false, "created before": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testManifests(t, before)
		})
	}
}

func testManifests(t *testing.T, before bool) {
	w := newWorld(t)
	account := w.applyManual(before)
	port := freePort(t)
	op := gopf.New()
	op.Settings.Peering.Standalone = true // other tests can create the peering resources at any time
	op.Settings.Admission.Managed = w.managed
	op.Settings.Admission.Server = webhook.Service{Name: "myoperator", Port: port, Listen: webhook.Local{Addr: "127.0.0.1", Port: port}}
	op.OnLogin("login", func(context.Context, *gopf.Activity) (*gopf.Login, error) {
		return &gopf.Login{Config: account, Namespace: w.namespace}, nil
	})
	x := gopf.For[*Thing](op, w.things())
	x.Validate("check", func(_ context.Context, r *review) error { return gopf.Deny("%s", r.Object.Spec.Field) })
	x.Mutate("change", func(_ context.Context, r *review) error { r.Patch.Set("spec.field", "changed"); return nil })
	o := w.start(op, gopf.Cluster(nil))
	u := w.try(cluster)
	kit.Eventually(t, func() error {
		_, err := u.create("a", fields{}, dryRun)
		if err == nil || !strings.Contains(err.Error(), "denied the request: changed") {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
	if o.Stop(); o.Err != nil {
		t.Error(o.Err)
	}
	w.must(u.create("a", fields{}))
	for _, line := range o.Log.With("A permission is missing.") {
		if !strings.Contains(line, "resource=events") { // only handlers of changes post them
			t.Error(line)
		}
	}
}

// applyManual applies the manifests of the manual in the test's namespace, and
// returns the configuration of the account in them. If before is set, the objects are
// created that the operator would create, and it may not create any.
func (w *world) applyManual(before bool) *rest.Config {
	w.t.Helper()
	page, err := os.ReadFile("../../../../docs/admission.md")
	if err != nil {
		w.t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```yaml\n")
	text, _, found := strings.Cut(text, "```")
	if !found {
		w.t.Fatal("the manual has no manifests")
	}
	text = strings.NewReplacer(
		"databases.hooks.example.com", w.managed, "namespace: myoperator", "namespace: "+w.namespace, "name: myoperator-admission", "name: "+w.group,
		// Nobody forwards to pods here.
		"  selector: {app: myoperator}\n", "  type: ExternalName\n  externalName: localhost\n",
	).Replace(text)
	if before {
		rule := regexp.MustCompile(`(?m)^  - apiGroups: \[.*\] # unless .*\n    resources: .*\n    verbs: \[create\]\n`)
		if n := len(rule.FindAllString(text, -1)); n != 2 {
			w.t.Fatalf("%d rules for creations", n)
		}
		text = rule.ReplaceAllString(text, "")
		for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
			text += fmt.Sprintf("---\napiVersion: admissionregistration.k8s.io/v1\nkind: %s\nmetadata: {name: %s}\nwebhooks: []\n", kind, w.managed)
		}
		text += fmt.Sprintf("---\napiVersion: v1\nkind: Secret\nmetadata: {name: myoperator-webhook, namespace: %s}\n", w.namespace)
	}
	path := filepath.Join(w.t.TempDir(), "manifests.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	objects, err := manifests.Read(path)
	if err == nil {
		err = manifests.Apply(w.ctx(), cluster, objects, nil)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		for _, plural := range []string{"clusterroles", "clusterrolebindings"} {
			w.remove(schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: plural}, "", w.group)
		}
	})
	return w.token("myoperator")
}

// token is the configuration of who is a service account.
func (w *world) token(name string) *rest.Config {
	w.t.Helper()
	token := w.must(w.client(accounts, w.namespace).Create(w.ctx(), &unstructured.Unstructured{Object: fields{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": fields{"name": name}, "spec": fields{},
	}}, metav1.CreateOptions{}, "token"))
	config := rest.AnonymousClientConfig(cluster)
	config.BearerToken, _, _ = unstructured.NestedString(token.Object, "status", "token")
	return config
}
