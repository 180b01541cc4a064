package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"gopf.dev/gopf"
	"gopf.dev/gopf/cli"
	"gopf.dev/gopf/internal/policy"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

// watched is a resource of its own, because its policy is for all namespaces.
var watched = schema.GroupVersionResource{Group: "insight.gopf.dev", Version: "v1", Resource: "insights"}

// insightOperator has a handler that is delayed for a long time, and one for deletions.
func insightOperator() *gopf.Operator {
	op := gopf.New(gopf.Identity("insight.gopf.dev"))
	op.Settings.Peering.Standalone = true // other tests define peerings, which the accounts may not read
	x := op.Resource("insights.insight.gopf.dev")
	x.OnCreate("wait", func(context.Context, *gopf.Change[gopf.Unstructured]) error {
		return gopf.RetryAfter(time.Hour, fmt.Errorf("not yet"))
	})
	x.OnDelete("drop", func(context.Context, *gopf.Change[gopf.Unstructured]) error { return nil })
	return op
}

// defineInsights defines the resource with a policy that reserves the annotations of the
// operator, which runs as the admin of the tests.
func defineInsights(t *testing.T) {
	t.Helper()
	crds := objects{t, "", "CustomResourceDefinition", definitions}
	crds.create("insights.insight.gopf.dev", map[string]any{"spec": map[string]any{
		"group": "insight.gopf.dev", "scope": "Namespaced",
		"names": map[string]any{"plural": "insights", "singular": "insight", "kind": "Insight"},
		"versions": []any{map[string]any{
			"name": "v1", "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		}},
	}})
	t.Cleanup(func() { crds.delete("insights.insight.gopf.dev") })
}

func reserveInsights(t *testing.T, account string) {
	t.Helper()
	made, err := policy.Reservation{
		Name: "insights-state", Account: account, Prefixes: []string{"insight.gopf.dev"},
		Resources: []policy.Resource{{Group: "insight.gopf.dev", Plural: "insights"}},
	}.Objects()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range made {
		kind := o["kind"].(string)
		plural := map[string]string{"ValidatingAdmissionPolicy": "validatingadmissionpolicies", "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings"}[kind]
		raw, _ := json.Marshal(o)
		var fields map[string]any
		_ = json.Unmarshal(raw, &fields)
		in := objects{t, "", kind, schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: plural}}
		in.create("insights-state", map[string]any{"spec": fields["spec"]})
		t.Cleanup(func() { in.delete("insights-state") })
	}
}

// accountOf creates an account with the verbs on the resource, and returns its kubeconfig.
func accountOf(t *testing.T, namespace, account string, verbs ...any) (kubeconfig string) {
	t.Helper()
	bind := objects{t, namespace, "Role", schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}}
	bind.create(account, map[string]any{"rules": []any{map[string]any{"apiGroups": []any{"insight.gopf.dev"}, "resources": []any{"insights", "insights/status"}, "verbs": verbs}}})
	bind.kind, bind.resource.Resource = "RoleBinding", "rolebindings"
	bind.create(account, map[string]any{
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": account},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "namespace": namespace, "name": account}},
	})
	as := inAccount(namespace, account)
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: as.Host, CertificateAuthorityData: as.CAData, CertificateAuthority: as.CAFile}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{
		Token: as.BearerToken, ClientCertificateData: as.CertData, ClientKeyData: as.KeyData, ClientCertificate: as.CertFile, ClientKey: as.KeyFile,
		Impersonate: as.Impersonate.UserName, ImpersonateGroups: as.Impersonate.Groups,
	}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u", Namespace: namespace}
	config.CurrentContext = "x"
	path := filepath.Join(t.TempDir(), account)
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCommandsAboutObjectsUseThePermissionsOfTheUser(t *testing.T) {
	t.Parallel()
	space := namespace(t)
	defineInsights(t)
	ctx := context.WithoutCancel(t.Context())
	admin := dynamic.NewForConfigOrDie(cluster).Resource(watched).Namespace(space)
	kit.Eventually(t, func() error { // the resource must be served
		_, err := admin.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "insight.gopf.dev/v1", "kind": "Insight", "metadata": map[string]any{"name": "x", "finalizers": []any{"other.io/guard"}}, "spec": map[string]any{"size": int64(1)},
		}}, metav1.CreateOptions{})
		return err
	})
	t.Cleanup(func() {
		_, _ = admin.Patch(ctx, "x", "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	})
	everything := []any{"get", "list", "watch", "patch"}
	user, operator, person := accountOf(t, space, "user", everything...), accountOf(t, space, "operator", everything...), accountOf(t, space, "person", append([]any{policy.Verb}, everything...)...)
	reserveInsights(t, "system:serviceaccount:"+space+":operator")

	command := func(kubeconfig string, args ...string) (int, string) {
		var out bytes.Buffer
		code := cli.Run(t.Context(), insightOperator(), append(args, "--kubeconfig="+kubeconfig, "--namespace="+space), &out, &out)
		return code, out.String()
	}
	run, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cli.Run(run, insightOperator(), []string{"run", "--standalone", "--kubeconfig=" + operator, "--namespace=" + space}, io.Discard, io.Discard)
	}()
	kit.Eventually(t, func() error {
		if code, out := command(user, "explain", "insight/x"); code != 0 || !strings.Contains(out, "waits for wait") || !strings.Contains(out, "not yet") {
			return fmt.Errorf("exit code %d: %s", code, out)
		}
		return nil
	})
	// The policy is enforced some time after its creation.
	kit.Eventually(t, func() error {
		code, out := command(user, "retry", "insights/x")
		if code != 1 || !strings.Contains(out, `grant the rule {apiGroups: ["insight.gopf.dev"], resources: ["insights"], verbs: ["operate"]}`) {
			return fmt.Errorf("exit code %d: %s", code, out)
		}
		return nil
	})
	attempts := func(kubeconfig string) (int, error) {
		code, out := command(kubeconfig, "explain", "insights/x", "-o", "json")
		var report struct {
			Handlers []struct {
				ID       string
				Attempts int
			}
		}
		if err := json.Unmarshal([]byte(out), &report); code != 0 || err != nil {
			return 0, fmt.Errorf("exit code %d: %w: %s", code, err, out)
		}
		return report.Handlers[0].Attempts, nil
	}
	before, err := attempts(person)
	if err != nil {
		t.Fatal(err)
	}
	if code, out := command(person, "retry", "insights/x", "wait"); code != 0 || !strings.Contains(out, "wait due now") {
		t.Errorf("retry with the verb: exit code %d: %s", code, out)
	}
	kit.Eventually(t, func() error {
		if after, err := attempts(person); err != nil || after <= before {
			return fmt.Errorf("%d attempts before, %d after: %w", before, after, err)
		}
		return nil
	})
	if code, out := command(user, "pause", "insights/x", "--reason=a test"); code != 0 || !strings.Contains(out, "insights/x paused") {
		t.Errorf("pause: exit code %d: %s", code, out)
	}
	if code, out := command(user, "explain", "insights/x"); code != 0 || !strings.Contains(out, "paused by the annotation insight.gopf.dev/pause: a test") {
		t.Errorf("explain: exit code %d: %s", code, out)
	}
	if code, out := command(user, "continue", "insights/x"); code != 0 || !strings.Contains(out, "insights/x continued") {
		t.Errorf("continue: exit code %d: %s", code, out)
	}
	stop()
	<-ended
	if code, out := command(user, "release"); code != 1 || !strings.Contains(out, `verbs: ["operate"]`) {
		t.Errorf("release without the verb: exit code %d: %s", code, out)
	}
	if code, out := command(person, "release"); code != 0 || !strings.Contains(out, "1 released, 0 failed") || !strings.Contains(out, "0 objects with marks") {
		t.Errorf("release: exit code %d: %s", code, out)
	}
	left, err := admin.Get(ctx, "x", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if f := left.GetFinalizers(); len(f) != 1 || f[0] != "other.io/guard" || len(left.GetAnnotations()) != 0 {
		t.Errorf("left: %v, %v", f, left.GetAnnotations())
	}
}
