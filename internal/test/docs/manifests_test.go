package docs

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"gopf.dev/gopf/internal/rbac"
	"gopf.dev/gopf/kind"
)

// typed are the kinds whose manifests are checked field by field.
var typed = map[string]func() any{
	"v1 Namespace":       func() any { return &corev1.Namespace{} },
	"v1 Secret":          func() any { return &corev1.Secret{} },
	"v1 Service":         func() any { return &corev1.Service{} },
	"v1 ServiceAccount":  func() any { return &corev1.ServiceAccount{} },
	"v1 Pod":             func() any { return &corev1.Pod{} },
	"apps/v1 Deployment": func() any { return &appsv1.Deployment{} },
	"rbac.authorization.k8s.io/v1 ClusterRole":        func() any { return &rbacv1.ClusterRole{} },
	"rbac.authorization.k8s.io/v1 ClusterRoleBinding": func() any { return &rbacv1.ClusterRoleBinding{} },
	"rbac.authorization.k8s.io/v1 Role":               func() any { return &rbacv1.Role{} },
	"rbac.authorization.k8s.io/v1 RoleBinding":        func() any { return &rbacv1.RoleBinding{} },
}

// TestEveryManifestIsValid reads all YAML: parts of manifests must be YAML,
// whole ones must be objects, and those of well-known kinds have no fields that
// these do not have.
func TestEveryManifestIsValid(t *testing.T) {
	objects := 0
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.language != "yaml" {
				continue
			}
			for _, document := range documents(t, p, b) {
				var value any
				if err := yaml.UnmarshalStrict(document, &value); err != nil {
					t.Errorf("%s:%d: %v", p.path, b.line, err)
					continue
				}
				fields, _ := value.(map[string]any)
				if fields["kind"] == nil && fields["apiVersion"] == nil {
					continue // a part
				}
				objects++
				for _, problem := range invalid(document) {
					t.Errorf("%s:%d: %s", p.path, b.line, problem)
				}
			}
		}
	}
	if objects < 5 {
		t.Errorf("only %d whole manifests are found", objects)
	}
}

func documents(t *testing.T, p *page, b block) [][]byte {
	t.Helper()
	var all [][]byte
	reader := utilyaml.NewDocumentDecoder(io.NopCloser(strings.NewReader(b.text)))
	defer reader.Close()
	buffer := make([]byte, len(b.text)+1)
	for {
		n, err := reader.Read(buffer)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s:%d: %v", p.path, b.line, err)
		}
		all = append(all, bytes.Clone(buffer[:n]))
	}
}

// invalid tells what is wrong with a manifest.
func invalid(document []byte) (problems []string) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name         string `json:"name"`
			GenerateName string `json:"generateName"`
		} `json:"metadata"`
	}
	if err := yaml.Unmarshal(document, &head); err != nil {
		return []string{err.Error()}
	}
	for name, value := range map[string]string{"apiVersion": head.APIVersion, "kind": head.Kind, "metadata.name": head.Metadata.Name + head.Metadata.GenerateName} {
		if value == "" {
			problems = append(problems, "the manifest has no "+name)
		}
	}
	if fresh, known := typed[head.APIVersion+" "+head.Kind]; known {
		if err := yaml.UnmarshalStrict(document, fresh()); err != nil {
			problems = append(problems, err.Error())
		}
	}
	return problems
}

// TestTheRolesOfTheDeploymentAreEnough compares what is deployed with what the
// operator asks the cluster for.
func TestTheRolesOfTheDeploymentAreEnough(t *testing.T) {
	var granted []rbacv1.PolicyRule
	p := readPage(t, "docs/deployment.md")
	for _, b := range p.blocks {
		if b.language != "yaml" {
			continue
		}
		for _, document := range documents(t, p, b) {
			var role rbacv1.ClusterRole // it has all that a Role has
			if err := yaml.Unmarshal(document, &role); err != nil {
				t.Fatal(err)
			}
			granted = append(granted, role.Rules...)
		}
	}
	handled := kind.Info{Group: "example.com", Version: "v1", Plural: "databases", Namespaced: true, Subresources: []string{"status"}, Verbs: []string{"get"}}
	needs := rbac.Needs([]rbac.Use{{Info: handled, Write: []string{"create"}}}, rbac.Framework{Definitions: true, Namespaces: true, Posting: true})
	needs = append(append(needs, rbac.Lease("databases", "")...), rbac.Peering(kind.Info{Group: "kopf.dev", Version: "v1", Plural: "clusterkopfpeerings"}))
	for _, n := range needs {
		name := n.Info.Plural
		if n.Subresource != "" {
			name += "/" + n.Subresource
		}
		for _, verb := range n.Verbs {
			if !slices.ContainsFunc(granted, func(r rbacv1.PolicyRule) bool {
				return slices.Contains(r.APIGroups, n.Info.Group) && slices.Contains(r.Resources, name) && slices.Contains(r.Verbs, verb)
			}) {
				t.Errorf("nothing grants to %s %s", verb, name)
			}
		}
	}
}

// TestTheDockerfileIsThatOfNewProjects compares the page with the template for projects of a
// published version.
func TestTheDockerfileIsThatOfNewProjects(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(root, "cmd/gopf/template/Dockerfile.tmpl"))
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	parsed, err := template.New("Dockerfile").Delims("[[", "]]").Parse(string(raw))
	if err == nil {
		err = parsed.Execute(&want, map[string]bool{"Unreleased": false})
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range readPage(t, "docs/deployment.md").blocks {
		if b.language == "dockerfile" {
			if diff := cmp.Diff(want.String(), b.text); diff != "" {
				t.Error(diff)
			}
			return
		}
	}
	t.Error("there is no Dockerfile")
}
