package admission

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/webhook"
)

var (
	examples    = kind.Info{Group: "kopf.dev", Version: "v1", Plural: "kopfexamples", Kind: "KopfExample", Singular: "kopfexample", Namespaced: true, Preferred: true}
	configMaps  = kind.Info{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Singular: "configmap", Namespaced: true, Preferred: true}
	deployments = kind.Info{Group: "apps", Version: "v1", Plural: "deployments", Kind: "Deployment", Singular: "deployment", Namespaced: true, Preferred: true}
)

// validating returns a handler that allows everything.
func validating(id, of string, a handler.Admission) *handler.Handler {
	selector, err := kind.Parse(of)
	if err != nil {
		panic(err)
	}
	return &handler.Handler{
		Family: handler.Reviews, ID: id, Of: selector, Admission: &a, Where: id + ".go:1",
		Call: func(context.Context, *handler.Request) error { return nil },
	}
}

func asJSON(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func throughJSON(t *testing.T, v any) any {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return asJSON(t, string(raw))
}

func TestEntriesEqualThoseOfKopf(t *testing.T) {
	labelled := validating("validate1", "kopfexamples", handler.Admission{Persistent: true, Labels: []metav1.LabelSelectorRequirement{
		{Key: "somelabel", Operator: "In", Values: []string{"somevalue"}},
		{Key: "other", Operator: "Exists"},
		{Key: "bad", Operator: "DoesNotExist"},
	}})
	field := validating("check/fld_x/spec.field", "kopfexamples", handler.Admission{
		Operations: []string{"CREATE", "UPDATE"}, IgnoreFailures: true})
	mutating := validating("mutate1", "kopfexamples", handler.Admission{Mutating: true})
	p := Plan{
		Managed: "auto.kopf.dev", Handlers: handler.Set{labelled, mutating, field}, Resources: []kind.Info{examples, configMaps},
		Server: webhook.ClientConfig{URL: "https://host:18443/hooks", CABundle: []byte("PEM")},
	}
	want := asJSON(t, `[
	 {"name": "validate1.auto.kopf.dev", "sideEffects": "None", "failurePolicy": "Fail", "matchPolicy": "Equivalent",
	  "rules": [{"apiGroups": ["kopf.dev"], "apiVersions": ["v1"], "resources": ["kopfexamples"], "operations": ["*"], "scope": "*"}],
	  "objectSelector": {"matchExpressions": [{"key": "somelabel", "operator": "In", "values": ["somevalue"]},
	                                           {"key": "other", "operator": "Exists"}, {"key": "bad", "operator": "DoesNotExist"}]},
	  "clientConfig": {"url": "https://host:18443/hooks/validate1", "caBundle": "UEVN"},
	  "timeoutSeconds": 30, "admissionReviewVersions": ["v1", "v1beta1"]},
	 {"name": "check.fld-x.spec.field.auto.kopf.dev", "sideEffects": "None", "failurePolicy": "Ignore", "matchPolicy": "Equivalent",
	  "rules": [{"apiGroups": ["kopf.dev"], "apiVersions": ["v1"], "resources": ["kopfexamples"], "operations": ["CREATE", "UPDATE"], "scope": "*"}],
	  "objectSelector": null,
	  "clientConfig": {"url": "https://host:18443/hooks/check/fld_x/spec.field", "caBundle": "UEVN"},
	  "timeoutSeconds": 30, "admissionReviewVersions": ["v1", "v1beta1"]}]`)
	if d := cmp.Diff(want, throughJSON(t, p.Entries(false))); d != "" {
		t.Error(d)
	}
	if got := p.Entries(true); len(got) != 1 || got[0]["name"] != "mutate1.auto.kopf.dev" {
		t.Errorf("mutating: got %v", got)
	}
	if got := p.Persistent().Entries(false); len(got) != 1 || got[0]["name"] != "validate1.auto.kopf.dev" {
		t.Errorf("persistent: got %v", got)
	}
	if got := p.Persistent().Entries(true); got == nil || len(got) != 0 {
		t.Errorf("persistent mutating: got %v, want an empty list", got)
	}
}

func TestEntriesOfVitalKindsExcludeSystemNamespaces(t *testing.T) {
	for name, c := range map[string]struct {
		of        string
		every     bool
		namespace string
		want      []any
	}{
		"core kinds":              {"configmaps", false, "operators", []any{"kube-system", "operators"}},
		"apps kinds":              {"deployments", false, "operators", []any{"kube-system", "operators"}},
		"own namespace unknown":   {"configmaps", false, "", []any{"kube-system"}},
		"operator in kube-system": {"configmaps", false, "kube-system", []any{"kube-system"}},
		"custom kinds":            {"kopfexamples", false, "operators", nil},
		"every namespace":         {"configmaps", true, "operators", nil},
		"everything":              {"*", false, "operators", []any{"kube-system", "operators"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := Plan{
				Managed: "auto.kopf.dev", Resources: []kind.Info{examples, configMaps, deployments}, Namespace: c.namespace,
				Handlers: handler.Set{validating("v", c.of, handler.Admission{EveryNamespace: c.every})},
			}
			var want any
			if c.want != nil {
				want = map[string]any{"matchExpressions": []any{
					map[string]any{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": c.want}}}
			}
			if d := cmp.Diff(want, p.Entries(false)[0]["namespaceSelector"]); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestEntriesNameSubresources(t *testing.T) {
	for subresource, want := range map[string][]any{
		"":       {"kopfexamples"},
		"status": {"kopfexamples/status"},
		"*":      {"kopfexamples", "kopfexamples/*"},
	} {
		p := Plan{Managed: "a.b", Resources: []kind.Info{examples},
			Handlers: handler.Set{validating("v", "kopfexamples", handler.Admission{Subresource: subresource, SideEffects: true})}}
		e := p.Entries(false)[0]
		if d := cmp.Diff(want, e["rules"].([]any)[0].(map[string]any)["resources"]); d != "" {
			t.Errorf("%q: %s", subresource, d)
		}
		if e["sideEffects"] != "NoneOnDryRun" {
			t.Errorf("sideEffects: got %v", e["sideEffects"])
		}
	}
}

func TestEntriesDoNotDependOnTheOrderOfDiscovery(t *testing.T) {
	h := handler.Set{validating("v", "*", handler.Admission{})}
	one := Plan{Managed: "a.b", Handlers: h, Resources: []kind.Info{examples, configMaps, deployments}}
	other := Plan{Managed: "a.b", Handlers: h, Resources: []kind.Info{deployments, configMaps, examples}}
	if d := cmp.Diff(one.Entries(false), other.Entries(false)); d != "" {
		t.Error(d)
	}
}

func TestKubernetesAcceptsWebhookNames(t *testing.T) {
	for id, want := range map[string]string{
		"Class.Method": "class.method.auto.kopf.dev",
		"größe":        "grc3b6c39fe.auto.kopf.dev",
		"a_b/c":        "a-b.c.auto.kopf.dev",
	} {
		if got := Name(id, "auto.kopf.dev"); got != want {
			t.Errorf("%s: got %s, want %s", id, got, want)
		}
	}
}

func TestDeclarationsAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		handlers handler.Set
		managed  string
		want     string // a part of the error; "" means no error
	}{
		"fine": {handler.Set{
			validating("a", "pods", handler.Admission{}),
			validating("b", "pods", handler.Admission{Mutating: true}),
			validating("s", "pods", handler.Admission{Subresource: "scale"}),
		}, "auto.kopf.dev", ""},
		"an id that ends with a dot": {handler.Set{validating("id.", "pods", handler.Admission{})}, "", "cannot be the name of a webhook"},
		"two ids that look the same": {handler.Set{validating("a_b", "pods", handler.Admission{}), validating("A-b", "jobs", handler.Admission{})}, "auto.kopf.dev", "the same webhook"},
		"one id that does both":      {handler.Set{validating("a", "pods", handler.Admission{}), validating("a", "pods", handler.Admission{Mutating: true})}, "auto.kopf.dev", "the same webhook"},
		"one id, not managed by us":  {handler.Set{validating("a", "pods", handler.Admission{}), validating("a", "jobs", handler.Admission{})}, "", ""},
		"an unknown operation":       {handler.Set{validating("a", "pods", handler.Admission{Operations: []string{"PATCH"}})}, "", "unknown operation \"PATCH\""},
		"a typed scale":              {handler.Set{validating("a", "pods", handler.Admission{Typed: true, Subresource: "scale"})}, "", "untyped"},
		"a typed status":             {handler.Set{validating("a", "pods", handler.Admission{Typed: true, Subresource: "status"})}, "", ""},
		"a change": {handler.Set{func() *handler.Handler {
			h := validating("a", "pods", handler.Admission{})
			h.Change = &handler.Change{Path: []string{"spec"}, Old: handler.Absent}
			return h
		}()}, "", "compare the values in the handler"},
		"a configuration without dot": {nil, "gopf", "not a domain name with a dot"},
		"a configuration with spaces": {nil, "my hooks.dev", "not a domain name"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check(c.handlers, c.managed)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestMergedKeepsForeignWebhooks(t *testing.T) {
	entry := func(name string) any { return Entry{"name": name} }
	wanted := []Entry{{"name": "a.auto.dev"}, {"name": "b.auto.dev"}}
	for name, c := range map[string]struct{ present, want []any }{
		"an empty list":   {nil, []any{entry("a.auto.dev"), entry("b.auto.dev")}},
		"others before":   {[]any{entry("x.org.dev")}, []any{entry("x.org.dev"), entry("a.auto.dev"), entry("b.auto.dev")}},
		"others around":   {[]any{entry("x.org.dev"), entry("b.auto.dev"), entry("y.org.dev")}, []any{entry("x.org.dev"), entry("a.auto.dev"), entry("b.auto.dev"), entry("y.org.dev")}},
		"former handlers": {[]any{entry("old.auto.dev"), entry("y.org.dev"), entry("older.auto.dev")}, []any{entry("a.auto.dev"), entry("b.auto.dev"), entry("y.org.dev")}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, merged(c.present, wanted, "auto.dev")); d != "" {
				t.Error(d)
			}
		})
	}
}
