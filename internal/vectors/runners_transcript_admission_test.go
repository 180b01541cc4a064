package vectors_test

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/admission"
	"gopf.dev/gopf/webhook"
)

// playAdmission runs an operator with webhooks of many kinds. Its server only says
// where it is: connections do not know virtual time.
//
// The differences:
//   - A configuration is looked at before it is written, and followed afterwards,
//     since others may change it. It is made with its webhooks in it, instead of
//     empty first. Patches are bound to the version that was looked at.
//   - Ids are made of letters, digits and -_./, so that "Mut!ü%" is none. Names of
//     webhooks have small letters only, as Kubernetes demands.
//   - The subresource "*" includes the object itself.
//   - Kinds of the core and apps groups are not reviewed in kube-system and in the
//     operator's own namespace (rule 27).
//   - Webhooks for updates have match conditions, so that they never block the end of
//     a deletion (rule 27). The cluster of this test does not tell accounts.
func playAdmission(t *testing.T, _ string, at scene, _ []request) []request {
	op := gopf.New()
	op.Settings.Peering.Standalone = true
	op.Settings.Admission.Managed = "auto.kopf.dev"
	op.Settings.Admission.Server = webhook.Func(func(ctx context.Context, _ http.Handler, announce func(webhook.ClientConfig)) error {
		announce(webhook.ClientConfig{URL: "http://127.0.0.1:18443/hooks"})
		<-ctx.Done()
		return nil
	})
	grant := func(context.Context, *gopf.Review[gopf.Unstructured]) error { return nil }
	x := op.Resource("kopf.dev/v1/kopfexamples")
	x.WithLabel("somelabel", gopf.Is("somevalue")).WithLabel("other", gopf.Present).WithLabel("bad", gopf.Absent).
		WithLabel("fn", gopf.Matching(func(any, bool) bool { return true })).
		Validate("validate1", grant, gopf.Persistent())
	x.Field("spec.field").Validate("check/fld_x", grant, gopf.Operations(admissionv1.Create, admissionv1.Update), gopf.IgnoreFailures())
	x.Validate("temp", grant)
	op.Resource("v1/pods").Validate("pods1", grant)
	x.Mutate("mutate1", grant, gopf.SideEffects(), gopf.Subresource("*"))
	x.Mutate("Mut", grant, gopf.Operations(admissionv1.Delete))
	return playOperator(t, op, at, func(*wireCluster) {})
}

// asWeConfigure are the requests of Kopf about webhook configurations as we make
// them: the creation and the first patch are one.
func asWeConfigure(t *testing.T, all []request) (kept []request) {
	t.Helper()
	created := map[string]int{} // where, by the path of the configuration
	for _, r := range all {
		body := stringMap(r.Body)
		if !isConfiguration(r.Path) || body == nil {
			kept = append(kept, r)
			continue
		}
		if list, ok := body["webhooks"].([]any); ok {
			for _, e := range list {
				asWeWrite(stringMap(e))
			}
		}
		switch at, fresh := created[r.Path]; {
		case r.Method == http.MethodPost:
			created[r.Path+"/"+stringMap(body["metadata"])["name"].(string)] = len(kept)
		case fresh:
			stringMap(kept[at].Body)["webhooks"] = body["webhooks"]
			delete(created, r.Path)
			continue
		}
		kept = append(kept, r)
	}
	return kept
}

// asWeWrite makes an entry of Kopf one of ours.
func asWeWrite(e map[string]any) {
	e["name"] = strings.ToLower(strings.Replace(e["name"].(string), "Mut21ü25", "Mut", 1))
	client := stringMap(e["clientConfig"])
	client["url"] = strings.Replace(client["url"].(string), "Mut%21%C3%BC%25", "Mut", 1)
	for _, rule := range e["rules"].([]any) {
		operations := stringMap(rule)["operations"].([]any)
		if slices.Contains(operations, "*") || slices.Contains(operations, "UPDATE") {
			e["matchConditions"] = admission.Own{}.Conditions()
		}
		resources := stringMap(rule)["resources"].([]any)
		switch resources[0] {
		case "kopfexamples/*":
			stringMap(rule)["resources"] = append([]any{"kopfexamples"}, resources...)
		case "pods":
			e["namespaceSelector"] = map[string]any{"matchExpressions": []any{
				map[string]any{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": []any{"kube-system"}},
			}}
		}
	}
}

// completed are webhooks as Kubernetes completes them.
func completed(webhooks any, mutating bool) (all []any) {
	list, _ := webhooks.([]any)
	for _, e := range list {
		entry := maps.Clone(stringMap(e))
		for _, selector := range []string{"namespaceSelector", "objectSelector"} {
			if entry[selector] == nil {
				entry[selector] = map[string]any{}
			}
		}
		if mutating {
			entry["reinvocationPolicy"] = "Never"
		}
		all = append(all, entry)
	}
	return all
}
