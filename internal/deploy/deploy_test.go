package deploy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/internal/describe"
	"gopf.dev/gopf/internal/permissions"
)

func described() *describe.Operator {
	databases := describe.Resource{Text: "example.com/v1/databases", Group: "example.com", Version: "v1", Plural: "databases"}
	return &describe.Operator{
		Handlers: []describe.Handler{
			{ID: "create", Family: describe.Change, Where: "db/operator.go:10", Resource: databases},
			{ID: "check", Family: describe.Validate, Where: "db/operator.go:14", Resource: databases, Review: &describe.Review{}},
		},
		State:    describe.State{Prefixes: []string{"db.example.com"}},
		Settings: describe.Settings{Posting: true, WebhookService: "db-webhooks", WebhookSecret: "db-webhooks-webhook", Managed: "db.example.com", ExitSeconds: 40},
	}
}

func model(t *testing.T, o Options) *Model {
	t.Helper()
	if err := o.complete("db"); err != nil {
		t.Fatal(err)
	}
	return NewModel(o, described(), nil)
}

// find returns the generated object of the kind.
func find(t *testing.T, files map[string][]byte, kind string) object {
	t.Helper()
	for _, text := range files {
		all, err := Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range all {
			if o["kind"] == kind {
				return o
			}
		}
	}
	t.Fatalf("there is no %s", kind)
	return nil
}

// at returns the value at the path of keys and list indices.
func at(value any, path ...any) any {
	for _, key := range path {
		switch k := key.(type) {
		case string:
			o, _ := value.(object)
			value = o[k]
		case int:
			value = value.(list)[k]
		}
	}
	return value
}

func TestTheDeploymentHasWhatItsRolesAreFor(t *testing.T) {
	m := model(t, Options{Replicas: 2, Args: []string{"--priority=3"}})
	files, err := m.Files(nil)
	if err != nil {
		t.Fatal(err)
	}
	container := at(find(t, files, "Deployment"), "spec", "template", "spec", "containers", 0)
	want := list{"run", "--all-namespaces", "--priority=3", "--log-format=json", "--health=:8080", "--metrics=:9090", "--election=lease", "--election-name=db", "--standalone"}
	if diff := cmp.Diff(want, at(container, "args")); diff != "" {
		t.Error(diff)
	}
	if got := at(container, "env", 0, "value"); got != "230MiB" {
		t.Errorf("GOMEMLIMIT is %v", got)
	}
	if got := at(find(t, files, "Deployment"), "spec", "template", "spec", "terminationGracePeriodSeconds"); got != float64(45) {
		t.Errorf("the grace period is %v", got)
	}
	for _, kind := range []string{"PodDisruptionBudget", "NetworkPolicy", "ValidatingAdmissionPolicy", "ValidatingWebhookConfiguration", "Secret", "ServiceAccount"} {
		find(t, files, kind)
	}
	grants, err := permissions.Parse(files["rbac.yaml"], m.Target)
	if err != nil {
		t.Fatal(err)
	}
	if missing, unused := permissions.Compare(m.Permissions, grants, m.Target); missing != nil || unused != nil {
		t.Errorf("missing %v, unused %v", missing, unused)
	}
	if !slices.ContainsFunc(grants, func(g permissions.Grant) bool { return g.Resource == "leases" && g.Namespace == "db" }) {
		t.Error("there is no role for the lease")
	}
}

func TestServedNamespacesGetRolesOfTheirOwn(t *testing.T) {
	m := model(t, Options{Namespaces: []string{"a", "b"}, Namespace: "ops"})
	grants, err := permissions.Parse(m.Access(), m.Target)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range grants {
		if g.Resource == "databases" && g.Account == permissions.Operator && g.Namespace == "" {
			t.Errorf("%v is granted in the whole cluster", g)
		}
	}
	if missing, unused := permissions.Compare(m.Permissions, grants, m.Target); missing != nil || unused != nil {
		t.Errorf("missing %v, unused %v", missing, unused)
	}
}

func TestPatchesChangeGeneratedObjects(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`apiVersion: apps/v1
kind: Deployment
metadata: {name: db}
spec:
  template:
    spec:
      priorityClassName: high
      containers:
        - name: operator
          livenessProbe: null
          env: [{name: MORE, value: x}, {name: POD_ID, $patch: delete}]
        - {name: sidecar, image: s}
`)
	patches, err := Patches(dir)
	if err != nil {
		t.Fatal(err)
	}
	m := model(t, Options{})
	files, err := m.Files(patches)
	if err != nil {
		t.Fatal(err)
	}
	spec := at(find(t, files, "Deployment"), "spec", "template", "spec")
	container := at(spec, "containers", 0).(object)
	if at(spec, "priorityClassName") != "high" || at(spec, "containers", 1, "image") != "s" || container["livenessProbe"] != nil || container["image"] != "db:latest" {
		t.Errorf("got %v", spec)
	}
	if diff := cmp.Diff(list{object{"name": "GOMEMLIMIT", "value": "230MiB"}, object{"name": "MORE", "value": "x"}}, container["env"]); diff != "" {
		t.Error(diff)
	}
	write("apiVersion: v1\nkind: Namespace\nmetadata: {name: db, labels: {team: x}}\n")
	if patches, err = Patches(dir); err != nil {
		t.Fatal(err)
	}
	if files, err = m.Files(patches); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"operator.yaml", "rbac.yaml"} {
		first := find(t, map[string][]byte{name: files[name]}, "Namespace")
		if at(first, "metadata", "labels", "team") != "x" || at(first, "metadata", "labels", "pod-security.kubernetes.io/enforce") != "restricted" {
			t.Errorf("%s: got %v", name, first)
		}
	}
	write("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n")
	patches, err = Patches(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Files(patches); err == nil || !strings.Contains(err.Error(), "ConfigMap other matches no generated object") {
		t.Errorf("got %v", err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, text := range []string{"name: UPPER", "memory: 1", "replica: 2", "namespace: -", "replicas: -1"} {
		path := filepath.Join(t.TempDir(), OptionsFile)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if o, err := ReadOptions(path, "db"); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %+v, %v", text, o, err)
		}
	}
	o, err := ReadOptions(filepath.Join(t.TempDir(), OptionsFile), "My_op")
	if err != nil || o.Name != "my-op" || o.Namespace != "my-op" || o.Image != "my-op:latest" {
		t.Errorf("without a file: got %+v, %v", o, err)
	}
}

func TestMonitoringIsAddedOnRequest(t *testing.T) {
	for _, asked := range []bool{false, true} {
		files, err := model(t, Options{Monitoring: asked}).Files(nil)
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := files["monitoring.yaml"]; ok != asked || asked && !strings.Contains(string(text), "kind: ServiceMonitor") {
			t.Errorf("asked %v: got %s", asked, text)
		}
	}
}

func TestPrometheusReadsSecureMetricsWithItsToken(t *testing.T) {
	for _, secure := range []bool{false, true} {
		o := Options{Monitoring: true, Namespaces: []string{"a"}}
		if err := o.complete("db"); err != nil {
			t.Fatal(err)
		}
		d := described()
		d.Settings.SecureMetrics = secure
		m := NewModel(o, d, nil)
		files, err := m.Files(nil)
		if err != nil {
			t.Fatal(err)
		}
		endpoint := at(find(t, files, "ServiceMonitor"), "spec", "endpoints", 0).(object)
		if _, token := endpoint["bearerTokenFile"]; token != secure || (endpoint["scheme"] == "https") != secure {
			t.Errorf("secure %v: got %v", secure, endpoint)
		}
		grants, err := permissions.Parse(files["rbac.yaml"], m.Target)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range []string{"tokenreviews", "subjectaccessreviews"} {
			granted := slices.ContainsFunc(grants, func(g permissions.Grant) bool {
				return g.Resource == resource && g.Verb == "create" && g.Namespace == ""
			})
			if granted != secure {
				t.Errorf("secure %v: %s granted %v", secure, resource, granted)
			}
		}
	}
}
