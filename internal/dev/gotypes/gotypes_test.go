package gotypes

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../../.."

// generate returns the types of a file, with spaces as single ones.
func generate(t *testing.T, file string, o Options) (code, spaced string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if o.Package == "" {
		o.Package = "main"
	}
	out, err := Generate(text, o)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return string(out), strings.Join(strings.Fields(string(out)), " ")
}

func TestTheTypesCompile(t *testing.T) {
	found, err := filepath.Glob(root + "/examples/*/deploy/crd.yaml")
	if err != nil || len(found) < 2 {
		t.Fatalf("there are no definitions in the examples: %v", err)
	}
	found = append(found, root+"/examples/crd.yaml", "testdata/clusters.yaml")
	folder := t.TempDir()
	var packages []string
	add := func(file string, o Options, more string) {
		code, _ := generate(t, file, o)
		path := filepath.Join(folder, string(rune('a'+len(packages))), "types.go")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(code+more), 0o644); err != nil {
			t.Fatal(err)
		}
		packages = append(packages, path)
	}
	const empty = "\nfunc main() {}\n"
	for _, file := range found {
		add(file, Options{}, empty)
	}
	add("testdata/clusters.yaml", Options{Version: "all"}, empty)
	add("testdata/clusters.yaml", Options{Raw: []string{"spec.template", "spec.pools[]"}, Maps: []string{"spec.backup", "spec.byZone.*"}}, empty)
	// The type is one of an object that handlers can use.
	add("testdata/clusters.yaml", Options{}, "\nvar _ interface{ GetName() string } = &Cluster{}\n\nfunc main() { println(*Cluster{}.Spec.Template.Spec.TerminationGracePeriodSeconds, ClusterSpecModeReadOnly2) }\n")
	for _, path := range packages { // each is a package of its own
		cmd := exec.Command("go", "vet", path)
		if out, err := cmd.CombinedOutput(); err != nil {
			code, _ := os.ReadFile(path)
			t.Errorf("%v\n%s\n%s", err, out, code)
		}
	}
}

func TestFieldsHaveIdiomaticTypes(t *testing.T) {
	_, code := generate(t, "testdata/clusters.yaml", Options{})
	for _, want := range []string{
		"metav1.TypeMeta `json:\",inline\"`",
		"Spec ClusterSpec `json:\"spec,omitzero\"`",
		"Data map[string]string `json:\"data,omitempty\"`",
		"Version string `json:\"version\"`",
		"// Default: 3. Replicas *int32 `json:\"replicas,omitempty\"`",
		"Nothing *string `json:\"nothing\"`",
		"Since metav1.Time `json:\"since\"`",
		"Until *metav1.Time `json:\"until,omitempty\"`",
		"Token []byte `json:\"token,omitempty\"`",
		"Mode *ClusterSpecMode `json:\"mode,omitempty\"`",
		"ClusterSpecModeReadOnly ClusterSpecMode = \"read-only\" ClusterSpecModeReadOnly2 ClusterSpecMode = \"ReadOnly\"",
		"Memory *resource.Quantity `json:\"memory,omitempty\"`",
		"Limits map[string]resource.Quantity `json:\"limits,omitempty\"`",
		"Port *intstr.IntOrString `json:\"port,omitempty\"`",
		"Anything any `json:\"anything,omitempty\"`",
		"Settings map[string]any `json:\"settings,omitempty\"`",
		"Matrix [][]float64 `json:\"matrix,omitempty\"`",
		"// A union. Backup *ClusterSpecBackup `json:\"backup,omitempty\"`",
		"S3 *ClusterSpecBackupS3 `json:\"s3,omitempty\"`",
		"URL string `json:\"url,omitempty\"`",
		"X2fa bool `json:\"2fa\"`",
		"X string `json:\"-,omitempty\"`",
		"AB string `json:\"a-b,omitempty\"` AB2 string `json:\"a.b,omitempty\"` AB3 string `json:\"aB,omitempty\"`",
		"// The field \"with\\\"quote\" cannot be a field of a Go struct.",
		"Ref string `json:\"$ref,omitempty\"`",
		"Weight *int64 `json:\"weight,omitempty\"`",
		"ByZone map[string]ClusterSpecByZoneValue `json:\"byZone,omitempty\"`",
		"// A cluster */ with // newlines // // and //go:build ignore",
	} {
		if !strings.Contains(code, want) {
			t.Errorf("%s is missing in\n%s", want, code)
		}
	}
}

func TestPartsCanStayUntyped(t *testing.T) {
	_, code := generate(t, "testdata/clusters.yaml", Options{Raw: []string{"spec.template"}, Maps: []string{"spec.pools[]"}})
	for _, want := range []string{"Template json.RawMessage `json:\"template,omitempty\"`", "Pools []map[string]any `json:\"pools,omitempty\"`"} {
		if !strings.Contains(code, want) {
			t.Errorf("%s is missing", want)
		}
	}
	if strings.Contains(code, "TemplateSpec") {
		t.Error("a raw field has types")
	}
}

func TestVersionsCanBePicked(t *testing.T) {
	for version, want := range map[string]string{"": "ClusterSpecPools", "v1beta1": "Size *int64", "all": "type ClusterV1beta1Spec struct"} {
		if _, code := generate(t, "testdata/clusters.yaml", Options{Version: version}); !strings.Contains(code, want) {
			t.Errorf("%q: %s is missing", version, want)
		}
	}
}

func TestMistakesAreReported(t *testing.T) {
	text, err := os.ReadFile("testdata/clusters.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]struct {
		text string
		o    Options
	}{
		"there is no CustomResourceDefinition":           {"kind: Pod", Options{Package: "x"}},
		`clusters.db.example.com has no version "v2"`:    {string(text), Options{Package: "x", Version: "v2"}},
		"the definition has no field spec.templates":     {string(text), Options{Package: "x", Raw: []string{"spec.templates"}}},
		"error converting YAML to JSON":                  {"a: [", Options{Package: "x"}},
		"json: cannot unmarshal string into Go struct f": {"kind: CustomResourceDefinition\nspec: {versions: a}", Options{Package: "x"}},
	} {
		if _, err := Generate([]byte(c.text), c.o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
