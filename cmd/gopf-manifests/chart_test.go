package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/kube"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

// build builds the command gopf once.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "gopf-chart-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "gopf")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", path, "./cmd/gopf")
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := build(); err == nil && path != "" {
		_ = os.RemoveAll(filepath.Dir(path)) // a temporary file
	}
	os.Exit(code)
}

// written writes the chart of the database example once.
var written = sync.OnceValues(func() (string, error) {
	gopf, err := build()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(filepath.Dir(gopf), "database-operator")
	out, err := exec.Command(gopf, "manifests", "../../examples/database", "--helm", dir, "--version", "1.0.0").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return dir, nil
})

// charted returns a copy of the chart with the version.
func charted(t *testing.T, version string) string {
	t.Helper()
	from, err := written()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "database-operator")
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "Chart.yaml")
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, bytes.ReplaceAll(text, []byte("ersion: 1.0.0"), []byte("ersion: "+version)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestTheChartPassesLint(t *testing.T) {
	lint := action.NewLint()
	lint.Strict = true
	result := lint.Run([]string{charted(t, "1.0.0")}, map[string]any{})
	for _, err := range result.Errors {
		t.Error(err)
	}
	for _, m := range result.Messages {
		if m.Severity > 1 {
			t.Error(m)
		}
	}
}

// rendered returns the objects of the chart with the values.
func rendered(t *testing.T, dir string, values map[string]any) (all []*unstructured.Unstructured) {
	t.Helper()
	install := action.NewInstall(&action.Configuration{Capabilities: chartutil.DefaultCapabilities, KubeClient: nil, Log: t.Logf, Releases: storage.Init(driver.NewMemory())})
	install.DryRun, install.ClientOnly, install.ReleaseName, install.Namespace = true, true, "x", "ops"
	install.KubeVersion = &chartutil.KubeVersion{Version: "v1.37.1", Major: "1", Minor: "37"}
	loaded, err := loader.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	r, err := install.Run(loaded, values)
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range strings.Split("\n"+r.Manifest, "\n---") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &o.Object); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		if len(o.Object) > 0 {
			all = append(all, o)
		}
	}
	return all
}

func find(all []*unstructured.Unstructured, kind string) (found []*unstructured.Unstructured) {
	for _, o := range all {
		if o.GetKind() == kind {
			found = append(found, o)
		}
	}
	return found
}

func TestValuesReachTheObjects(t *testing.T) {
	dir := charted(t, "1.0.0")
	all := rendered(t, dir, map[string]any{
		"image": "other:1", "replicas": 1, "namespaces": []any{"a", "b"}, "extraArgs": []any{"--verbose"},
		"nodeSelector": map[string]any{"disk": "ssd"}, "crds": map[string]any{"install": true, "keep": false},
	})
	pod, _, _ := unstructured.NestedMap(find(all, "Deployment")[0].Object, "spec", "template", "spec")
	container := pod["containers"].([]any)[0].(map[string]any)
	args := fmt.Sprint(container["args"])
	for what, ok := range map[string]bool{
		"image":         container["image"] == "other:1",
		"namespaces":    strings.Contains(args, "--namespace=a --namespace=b") && !strings.Contains(args, "--all-namespaces"),
		"more args":     strings.Contains(args, "--verbose"),
		"node selector": fmt.Sprint(pod["nodeSelector"]) == "map[disk:ssd]",
		"roles":         len(find(all, "Role")) == 3, // of the operator's namespace, and of each served one
		"no PDB":        len(find(all, "PodDisruptionBudget")) == 0,
		"not kept":      find(all, "CustomResourceDefinition")[0].GetAnnotations()["helm.sh/resource-policy"] == "",
		"the namespace": find(all, "ServiceAccount")[0].GetNamespace() == "ops",
	} {
		if !ok {
			t.Errorf("%s: %v", what, pod)
		}
	}
	wide := rendered(t, dir, nil)
	if roles := find(wide, "ClusterRole"); len(roles) != 2 || len(find(wide, "PodDisruptionBudget")) != 1 || find(wide, "CustomResourceDefinition")[0].GetAnnotations()["helm.sh/resource-policy"] != "keep" {
		t.Errorf("with the defaults: %d roles", len(roles))
	}
}

func TestUnknownValuesAreRefused(t *testing.T) {
	loaded, err := loader.Load(charted(t, "1.0.0"))
	if err != nil {
		t.Fatal(err)
	}
	if err := chartutil.ValidateAgainstSchema(loaded, map[string]any{"imag": "x"}); err == nil || !strings.Contains(err.Error(), "imag") {
		t.Errorf("got %v", err)
	}
}

// installed is Helm on a real control plane.
type installed struct {
	t         *testing.T
	config    *action.Configuration
	client    dynamic.Interface
	namespace string
}

func newInstalled(t *testing.T) *installed {
	t.Helper()
	path := os.Getenv("GOPF_TEST_KUBECONFIG")
	if path == "" {
		t.Skip("GOPF_TEST_KUBECONFIG is not set")
	}
	rest, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(rest)
	if err != nil {
		t.Fatal(err)
	}
	i := &installed{t: t, client: client, namespace: "chart-test", config: &action.Configuration{}}
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Namespace = &path, &i.namespace
	if err := i.config.Init(flags, i.namespace, "memory", t.Logf); err != nil {
		t.Fatal(err)
	}
	i.config.KubeClient.(*kube.Client).Namespace = i.namespace
	space := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
		"name": i.namespace, "labels": map[string]any{"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted"},
	}}}
	if _, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Create(t.Context(), space, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	return i
}

func (i *installed) load(dir string) *chart.Chart {
	i.t.Helper()
	loaded, err := loader.Load(dir)
	if err != nil {
		i.t.Fatal(err)
	}
	return loaded
}

// withField adds a field to the schema of the definition in a chart.
func withField(t *testing.T, dir, field string) {
	t.Helper()
	path := filepath.Join(dir, "templates", "crds.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(text, []byte("storage:\n"))
	line := bytes.LastIndexByte(text[:at], '\n') + 1
	indent := string(text[line:at])
	added := indent + field + ":\n" + indent + "  type: string\n"
	if err := os.WriteFile(path, bytes.Join([][]byte{text[:line], []byte(added), text[line:]}, nil), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestClusterUpgradesUpgradeDefinitionsAndRemovalsKeepObjects(t *testing.T) {
	i := newInstalled(t)
	ctx := t.Context()
	crds := i.client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	// Another test may have created the same definition; Helm adopts only its own.
	if err := crds.Delete(ctx, "databases.techoral.com", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	eventually(t, "the definition is gone", func() error {
		_, err := crds.Get(ctx, "databases.techoral.com", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it exists"), err)
	})
	t.Cleanup(func() {
		_ = crds.Delete(context.WithoutCancel(ctx), "databases.techoral.com", metav1.DeleteOptions{}) // the control plane is temporary
	})
	install := action.NewInstall(i.config)
	install.ReleaseName, install.Namespace = "databases", i.namespace
	r, err := install.RunWithContext(ctx, i.load(charted(t, "1.0.0")), map[string]any{})
	if err != nil || r.Info.Status != release.StatusDeployed {
		t.Fatalf("install: %v", err)
	}
	databases := i.client.Resource(schema.GroupVersionResource{Group: "techoral.com", Version: "v1", Resource: "databases"}).Namespace(i.namespace)
	object := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "techoral.com/v1", "kind": "Database", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"engine": "mysql", "version": "8", "storage": "1Gi", "color": "red"},
		}}
	}
	create := func(name string) (color any) {
		t.Helper()
		eventually(t, "an object can be created", func() error {
			created, err := databases.Create(ctx, object(name), metav1.CreateOptions{})
			if err != nil {
				return err
			}
			color = created.Object["spec"].(map[string]any)["color"]
			return nil
		})
		return color
	}
	if color := create("first"); color != nil {
		t.Errorf("the first definition keeps the field: %v", color)
	}
	next := charted(t, "1.1.0")
	withField(t, next, "color")
	upgrade := action.NewUpgrade(i.config)
	upgrade.Namespace = i.namespace
	if _, err := upgrade.RunWithContext(ctx, "databases", i.load(next), map[string]any{}); err != nil {
		t.Fatalf("upgrade: %v", err)
	}
	n := 0
	eventually(t, "the new field is stored", func() error {
		n++
		if color := create(fmt.Sprintf("more-%d", n)); color != "red" {
			return fmt.Errorf("the field is %v", color)
		}
		return nil
	})
	if _, err := action.NewUninstall(i.config).Run("databases"); err != nil {
		t.Fatalf("uninstall: %v", err)
	}
	if _, err := databases.Get(ctx, "first", metav1.GetOptions{}); err != nil {
		t.Errorf("after the removal of the release: %v", err)
	}
	deployments := i.client.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace(i.namespace)
	eventually(t, "the Deployment is gone", func() error {
		if _, err := deployments.Get(ctx, "database-operator", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("it exists"), err)
		}
		return nil
	})
}

// The API server accepts everything in deploy, and the pods pass the policy "restricted".
func TestClusterAcceptsTheManifestsOfTheExamples(t *testing.T) {
	path := os.Getenv("GOPF_TEST_KUBECONFIG")
	if path == "" {
		t.Skip("GOPF_TEST_KUBECONFIG is not set")
	}
	newInstalled(t)
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig = &path
	client := kube.New(flags)
	files, err := filepath.Glob(filepath.Join("..", "..", "examples", "*", "deploy", "*.yaml"))
	if err != nil || len(files) < 40 {
		t.Fatalf("there are only %d manifests: %v", len(files), err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		// Dry runs need a namespace that exists.
		text = namespaces.ReplaceAll(text, []byte("${1}namespace: chart-test\n"))
		objects, err := client.Build(bytes.NewReader(text), true)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, o := range objects {
			gvr := o.Mapping.Resource
			rest, err := flags.ToRESTConfig()
			if err != nil {
				t.Fatal(err)
			}
			warnings := &collected{}
			rest.WarningHandler = warnings
			all, err := dynamic.NewForConfig(rest)
			if err != nil {
				t.Fatal(err)
			}
			var target dynamic.ResourceInterface = all.Resource(gvr)
			if o.Namespaced() {
				target = all.Resource(gvr).Namespace(o.Namespace)
			}
			raw := o.Object.(*unstructured.Unstructured)
			_, err = target.Apply(t.Context(), o.Name, raw, metav1.ApplyOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: "test", Force: true})
			if err != nil {
				t.Errorf("%s: %s %s: %v", name, raw.GetKind(), o.Name, err)
			}
			if got := warnings.String(); got != "" {
				t.Errorf("%s: %s %s: %s", name, raw.GetKind(), o.Name, got)
			}
		}
	}
}

var namespaces = regexp.MustCompile(`(?m)^( +)namespace: .*\n`)

// collected collects warnings of the API server, such as those about pod security.
type collected struct{ strings.Builder }

func (c *collected) HandleWarningHeader(_ int, _, text string) { _, _ = io.WriteString(c, text+"\n") }
