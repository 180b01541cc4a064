package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/policy"
	"gopf.dev/gopf/internal/test/e2e/kit"
	"gopf.dev/gopf/storage"
)

// protected is a resource of its own, because a policy is for all namespaces.
var protected = schema.GroupVersionResource{Group: "trust.gopf.dev", Version: "v1", Resource: "protecteds"}

// reserve defines the resource and puts the policy for it into the cluster.
func reserve(t *testing.T, account string) {
	t.Helper()
	crds := objects{t, "", "CustomResourceDefinition", definitions}
	crds.create("protecteds.trust.gopf.dev", map[string]any{"spec": map[string]any{
		"group": "trust.gopf.dev", "scope": "Namespaced",
		"names": map[string]any{"plural": "protecteds", "singular": "protected", "kind": "Protected"},
		"versions": []any{map[string]any{
			"name": "v1", "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		}},
	}})
	t.Cleanup(func() { crds.delete("protecteds.trust.gopf.dev") })
	enforce(t, policy.Reservation{
		Name: "protecteds-state", Account: account, Prefixes: []string{storage.DefaultPrefix}, Keys: []string{storage.DefaultName},
		Resources: []policy.Resource{{Group: "trust.gopf.dev", Plural: "protecteds"}, {Group: "", Plural: "configmaps-of-nobody"}},
	})
}

// as reaches the objects in the account, which has the verbs on them.
func as(t *testing.T, namespace, account string, verbs ...any) dynamic.ResourceInterface {
	t.Helper()
	bind := objects{t, namespace, "Role", schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}}
	bind.create(account, map[string]any{"rules": []any{map[string]any{"apiGroups": []any{"trust.gopf.dev"}, "resources": []any{"protecteds", "protecteds/status"}, "verbs": verbs}}})
	bind.kind, bind.resource.Resource = "RoleBinding", "rolebindings"
	bind.create(account, map[string]any{
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": account},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "namespace": namespace, "name": account}},
	})
	return dynamic.NewForConfigOrDie(inAccount(namespace, account)).Resource(protected).Namespace(namespace)
}

func inAccount(namespace, account string) *rest.Config {
	config := rest.CopyConfig(cluster)
	config.QPS = -1
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + namespace + ":" + account,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"}}
	return config
}

func packed(text []byte) string {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(text)
	_ = w.Close()
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

func TestThePolicyRefusesForgedStateAndNothingElse(t *testing.T) {
	t.Parallel()
	const prefix = storage.DefaultPrefix + "/"
	space := namespace(t)
	everything := []any{"get", "list", "watch", "create", "update", "patch", "delete"}
	reserve(t, "system:serviceaccount:"+space+":operator")
	tenant := as(t, space, "tenant", everything...)
	repairer := as(t, space, "repairer", append([]any{policy.Verb}, everything...)...)
	as(t, space, "operator", everything...)
	ctx := context.WithoutCancel(t.Context())
	merge := func(by dynamic.ResourceInterface, fields map[string]any, subresources ...string) error {
		raw, _ := json.Marshal(fields)
		_, err := by.Patch(ctx, "x", types.MergePatchType, raw, metav1.PatchOptions{}, subresources...)
		return err
	}
	annotate := func(annotations map[string]any) map[string]any {
		return map[string]any{"metadata": map[string]any{"annotations": annotations}}
	}
	object := func(name string, annotations map[string]string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "trust.gopf.dev/v1", "kind": "Protected", "spec": map[string]any{"size": int64(1)}}}
		o.SetName(name)
		o.SetAnnotations(annotations)
		return o
	}
	kit.Eventually(t, func() error { // the CRD must be served
		_, err := tenant.Create(ctx, object("x", map[string]string{"team": "a"}), metav1.CreateOptions{})
		return err
	})
	kit.Eventually(t, func() error { // the policy takes a moment to count
		if err := merge(tenant, annotate(map[string]any{prefix + "probe": fmt.Sprint(time.Now())})); !apierrors.IsForbidden(err) {
			return fmt.Errorf("a tenant got %w", err)
		}
		return nil
	})

	var diary kit.Diary
	op := gopf.New()
	x := op.Resource(protected.Group + "/v1/" + protected.Resource)
	note := func(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
		diary.Add("%s", c.Reason)
		return nil
	}
	x.OnCreate("create", note)
	x.OnUpdate("update", note)
	x.OnDelete("delete", note)
	run(t, op, gopf.Cluster(inAccount(space, "operator")), gopf.Namespaces(space))
	handled := func() string {
		o, err := repairer.Get(ctx, "x", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return o.GetAnnotations()[lastHandled]
	}
	kit.Await(t, "the operator may write its state", func() bool { return handled() != "" })

	moment := time.Now().UTC().Format(time.RFC3339)
	record := func(purpose string, more string) string {
		return fmt.Sprintf(`{"started":%q,"stopped":%q,"purpose":%q,"retries":1,"success":true,"failure":false%s}`, moment, moment, purpose, more)
	}
	bomb := packed(bytes.Repeat([]byte{' '}, 16<<20))
	forgeries := map[string]map[string]any{
		"a base changed together with the spec": {lastHandled: `{"spec":{"size":5}}`},
		"an update that is recorded as done":    {prefix + "update": record("update", "")},
		"a deletion that is recorded as done":   {prefix + "delete": record("delete", "")},
		"a delay until the year 9999":           {prefix + "update": record("update", `,"delayed":"9999-12-31T23:59:59Z"`)},
		"a base with foreign values":            {lastHandled: `{"spec":{"size":1,"path":"/data/of/another/tenant"}}`},
		"garbage in the base":                   {lastHandled: "{{{"},
		"a bomb in the compressed base":         {lastHandled + "-gz": bomb, lastHandled: nil},
		"a bomb in the handling note":           {prefix + "gopf.handling": fmt.Sprintf(`{"gz":%q}`, bomb)},
		"the removal of the base":               {lastHandled: nil},
		"a record of a handler named pause":     {prefix + "pause": "\n " + record("update", "")},
	}
	for name, annotations := range forgeries {
		forged := annotate(annotations)
		if strings.Contains(name, "spec") {
			forged["spec"] = map[string]any{"size": 5}
		}
		for _, subresources := range [][]string{nil, {"status"}} {
			before := handled()
			err := merge(tenant, forged, subresources...)
			if subresources == nil && !apierrors.IsForbidden(err) {
				t.Errorf("%s: a tenant got %v", name, err)
			}
			if handled() != before {
				t.Errorf("%s: it was stored (%v)", name, subresources)
			}
		}
		created := map[string]string{}
		for key, v := range maps.All(annotations) {
			if text, ok := v.(string); ok {
				created[key] = text
			}
		}
		if len(created) == 0 {
			continue
		}
		if _, err := tenant.Create(ctx, object("y", created), metav1.CreateOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), policy.Verb) {
			t.Errorf("%s, at creation: a tenant got %v", name, err)
		}
	}

	for _, allowed := range []struct {
		name   string
		change map[string]any
	}{
		{"a label", map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}}},
		{"an annotation", annotate(map[string]any{"team": "b", "kopf.zalando.organization/x": "y"})},
		{"a pause", annotate(map[string]any{prefix + "pause": "true", "gopf.dev/pause": "true"})},
		{"the end of the pause", annotate(map[string]any{prefix + "pause": nil, "gopf.dev/pause": nil})},
		{"the spec", map[string]any{"spec": map[string]any{"size": 2}}},
	} {
		if err := merge(tenant, allowed.change); err != nil {
			t.Errorf("%s: a tenant may not change it: %v", allowed.name, err)
		}
	}
	if err := merge(tenant, map[string]any{"status": map[string]any{"a": "b"}}, "status"); err != nil {
		t.Errorf("the status: a tenant may not change it: %v", err)
	}
	state := func(value any) map[string]any {
		return map[string]any{"status": map[string]any{storage.DefaultName: value}}
	}
	forged := map[string]any{"progress": map[string]any{"delete": map[string]any{"started": moment, "purpose": "delete", "success": true}}}
	if err := merge(tenant, state(forged), "status"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "status."+storage.DefaultName) {
		t.Errorf("a record in the status: a tenant got %v", err)
	}
	if err := merge(repairer, state(map[string]any{"kept": "x"}), "status"); err != nil {
		t.Errorf("an account with the verb %s is refused: %v", policy.Verb, err)
	}
	for name, change := range map[string]map[string]any{"changed": state(map[string]any{"kept": "y"}), "removed": state(nil), "replaced": {"status": map[string]any{storage.DefaultName: "text"}}} {
		if err := merge(tenant, change, "status"); !apierrors.IsForbidden(err) {
			t.Errorf("state in the status is %s: a tenant got %v", name, err)
		}
	}
	if err := merge(tenant, map[string]any{"status": map[string]any{"a": "c"}}, "status"); err != nil {
		t.Errorf("beside the state in the status: a tenant may not change it: %v", err)
	}
	if err := merge(repairer, state(nil), "status"); err != nil {
		t.Errorf("an account with the verb %s is refused: %v", policy.Verb, err)
	}
	kit.Await(t, "the change of the tenant is handled", func() bool { return strings.Contains(handled(), `"size":2`) })
	if err := merge(repairer, annotate(map[string]any{prefix + "update": record("update", "")})); err != nil {
		t.Errorf("an account with the verb %s is refused: %v", policy.Verb, err)
	}
	if err := merge(repairer, annotate(map[string]any{prefix + "update": nil, prefix + "pause": record("update", "")})); err != nil {
		t.Errorf("an account with the verb %s is refused: %v", policy.Verb, err)
	}
	if err := merge(tenant, annotate(map[string]any{prefix + "pause": nil})); !apierrors.IsForbidden(err) {
		t.Errorf("the removal of a record of a handler named pause: a tenant got %v", err)
	}
	if err := merge(repairer, annotate(map[string]any{prefix + "pause": nil})); err != nil {
		t.Errorf("an account with the verb %s is refused: %v", policy.Verb, err)
	}
	if err := tenant.Delete(ctx, "x", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	kit.Await(t, "the object is deleted, after its handler ran", func() bool {
		_, err := tenant.Get(ctx, "x", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	if got := diary.All(); got[len(got)-1] != "delete" {
		t.Errorf("the handlers were called for %q", got)
	}
}
