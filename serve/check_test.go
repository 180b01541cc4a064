package serve_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gopf.dev/gopf/serve"
)

// inspect returns the problems of a file, one in a line. %s in the text is a handler that has
// no mistakes.
func inspect(t *testing.T, text string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	text = strings.ReplaceAll("apiVersion: gopf.dev/v1\nkind: Operator\nmetadata: {name: things}\n"+text, "%s", "{id: h, on: [create], exec: [sh]}")
	if err := os.WriteFile(filepath.Join(dir, "operator.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, body := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	problems := serve.Inspect(os.DirFS(dir), "operator.yaml", serve.Dir(dir))
	if err := serve.Check(os.DirFS(dir), "operator.yaml", serve.Dir(dir)); (err == nil) != (problems.Err() == nil) {
		t.Errorf("Check returns %v, Inspect %v", err, problems)
	}
	return problems.Error()
}

const (
	oneHandler = "resources: [{resource: example.com/v1/things, handlers: [%s]}]\n"
	named      = "metadata: {name: '${object.metadata.name}'}"
)

func childOf(owns, template string) string {
	return "resources:\n  - resource: example.com/v1/things\n    handlers:\n      - id: c\n        reconcile: {owns: [" + owns + "]}\n        children: [{id: a, template: " + template + "}]\n"
}

func whereCEL(cel string) string {
	return "resources:\n  - resource: example.com/v1/things\n    where: {cel: \"" + cel + "\"}\n    handlers: [%s]\n"
}

func definition(file string) string {
	return "resources:\n  - resource: example.com/v1/things\n    definition: " + file + "\n    handlers: [%s]\n"
}

func TestEachMistakeIsOneProblemWithItsLine(t *testing.T) {
	files := map[string]string{
		"nameless.yaml": "apiVersion: v1\nkind: ConfigMap\n",
		"deploy.yaml":   "apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: 1}\n",
		"values.yaml":   "size: 3\n",
		"beta.yaml":     "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\n",
		"other.yaml":    "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {group: example.com, names: {plural: others}, versions: [{name: v1}, {name: v2}]}\n",
	}
	for _, m := range []struct{ name, text, want string }{
		{"constant filter", whereCEL("false"), "operator.yaml:6: warning: where.cel is false for all objects"},
		{"constant after other conditions", "resources:\n  - resource: example.com/v1/things\n    where:\n      labels: {a: b}\n      cel: 'true'\n    handlers: [%s]\n", "operator.yaml:8: warning: where.cel is true for all objects"},
		{"computed constant", whereCEL("1 < 2"), "operator.yaml:6: warning: where.cel is true for all objects"},
		{"constant validation", "resources: [{resource: example.com/v1/things, handlers: [{id: v, validate: true, cel: 'false'}]}]\n", `operator.yaml:4: warning: handler "v": cel is false for all objects`},
		{"nameless child", childOf("v1/configmaps", "{apiVersion: v1, kind: ConfigMap}"), `operator.yaml:9: child "a" has no name; add metadata.name`},
		{"empty name", childOf("v1/configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {name: ''}}"), `operator.yaml:9: child "a" has no name`},
		{"nameless file", childOf("v1/configmaps", "nameless.yaml"), `nameless.yaml:1: child "a" has no name`},
		{"child without a kind", childOf("v1/configmaps", "{apiVersion: v1, "+named+"}"), `operator.yaml:9: child "a" has no kind`},
		{"child without a version", childOf("v1/configmaps", "{kind: ConfigMap, "+named+"}"), `operator.yaml:9: child "a" has no apiVersion`},
		{"kind not owned", childOf("v1/services", "{apiVersion: v1, kind: ConfigMap, "+named+"}"), `operator.yaml:9: child "a" is a ConfigMap of v1, which is not in reconcile.owns`},
		{"version not owned", childOf("example.com/v1/parts", "{apiVersion: example.com/v2, kind: Part, "+named+"}"), `operator.yaml:9: child "a" is a Part of example.com/v2, which is not in reconcile.owns`},
		{"kind perhaps not owned", childOf("example.com/v1/people", "{apiVersion: example.com/v1, kind: Part, "+named+"}"), `operator.yaml:9: warning: child "a" is a Part of example.com/v1, which does not look like`},
		{"other manifest", definition("deploy.yaml"), "operator.yaml:6: definition: deploy.yaml is a Deployment of apps/v1; name the file of a CustomResourceDefinition"},
		{"no manifest", definition("values.yaml"), "operator.yaml:6: definition: values.yaml is not a manifest: it has no kind"},
		{"former version", definition("beta.yaml"), `operator.yaml:6: definition: beta.yaml has the apiVersion "apiextensions.k8s.io/v1beta1"; use apiextensions.k8s.io/v1`},
		{"definition of another resource", definition("other.yaml"), "operator.yaml:6: definition: other.yaml defines others.example.com with the versions [v1, v2], and not the resource example.com/v1/things"},
		{"negative limit", oneHandler + "settings:\n  queueing:\n    workerLimit: -1\n", "operator.yaml:7: queueing.workerLimit must be 0 or more, not -1"},
		{"negative timeout", oneHandler + "settings:\n  networking:\n    requestTimeout: -1s\n", "operator.yaml:7: networking.requestTimeout must be 0 or more, not -1s"},
		{"negative delays", oneHandler + "settings:\n  networking:\n    errorDelays: [1s, -1s]\n", "operator.yaml:7: networking.errorDelays[1] must be 0 or more, not -1s"},
		{"no timeout", oneHandler + "settings:\n  networking:\n    requestTimeout: 0\n", "operator.yaml:7: warning: networking.requestTimeout is 0"},
		{"short lifetime", oneHandler + "settings:\n  peering:\n    lifetime: 0s\n", "operator.yaml:7: peering.lifetime is 0s; use at least 1s"},
		{"election without a period", oneHandler + "settings:\n  election: {enabled: true, retryPeriod: 0s}\n", "operator.yaml:6: election has a duration of 15s"},
	} {
		t.Run(m.name, func(t *testing.T) {
			if got := inspect(t, m.text, files); !strings.HasPrefix(got, m.want) || strings.Contains(got, "\n") {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestWhatMayBeMeantIsNoProblem(t *testing.T) {
	for name, text := range map[string]string{
		"a filter with a variable":    whereCEL("object.spec.size > 3 || false"),
		"a negative priority":         oneHandler + "settings: {peering: {priority: -1}}\n",
		"a negative level":            oneHandler + "settings: {posting: {level: -4}}\n",
		"a kind of an expression":     childOf("v1/configmaps", "{apiVersion: v1, kind: \"${object.spec.kind}\", "+named+"}"),
		"metadata of an expression":   childOf("v1/configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: \"${object.spec.metadata}\"}"),
		"a plural in es":              childOf("networking.k8s.io/v1/ingresses", "{apiVersion: networking.k8s.io/v1, kind: Ingress, "+named+"}"),
		"a plural in ies":             childOf("networking.k8s.io/v1/networkpolicies", "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, "+named+"}"),
		"a plural in ys":              childOf("gateway.networking.k8s.io/v1/gateways", "{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, "+named+"}"),
		"an owned plural of one form": childOf("v1/endpoints", "{apiVersion: v1, kind: Endpoints, "+named+"}"),
		"an owned name":               childOf("deployments", "{apiVersion: apps/v1, kind: Deployment, "+named+"}"),
		"an owned short name":         childOf("cm", "{apiVersion: v1, kind: ConfigMap, "+named+"}"),
	} {
		if got := inspect(t, text, nil); got != "" {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

func TestAFileWithWarningsIsLoaded(t *testing.T) {
	dir := operator(t, "      - {id: h, on: [create], cel: 'null', where: {cel: 'false'}}\n", nil)
	if _, err := serve.New(os.DirFS(dir), "operator.yaml", serve.Dir(dir)); err != nil {
		t.Error(err)
	}
	h, err := serve.Open(os.DirFS(dir), "operator.yaml", serve.Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	h.Close()
}
