package controlplane

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The in-memory server is a process of its own with a kubeconfig, names itself in its
// version, serves all well-known kinds, and ends when it is stopped.
func TestTheInMemoryServerServesTheAPI(t *testing.T) {
	server := inMemory(t)
	if server.PID() == os.Getpid() || !strings.HasSuffix(server.Version(), "-gopf-in-memory") {
		t.Errorf("got process %d with version %q", server.PID(), server.Version())
	}
	c := connect(t, server.Kubeconfig())
	for _, path := range []string{"/api/v1/pods", "/apis/apps/v1/deployments", "/apis/rbac.authorization.k8s.io/v1/clusterroles", "/openapi/v3"} {
		if code, body := c.do("GET", path, ""); code != http.StatusOK {
			t.Errorf("GET %s: got %d %v", path, code, body)
		}
	}
	if code, _ := c.as("forged").do("GET", "/api/v1/pods", ""); code != http.StatusUnauthorized {
		t.Errorf("with a forged token: got %d, want 401", code)
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(server.Kubeconfig()); !os.IsNotExist(err) {
		t.Errorf("the kubeconfig still exists: %v", err)
	}
}

func inMemory(t *testing.T) *ControlPlane {
	t.Helper()
	server, err := Start(t.Context(), Options{Memory: true, Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	return server
}

// The in-memory server is built without the packages for CEL, but applies all else in the
// schema of a definition: it prunes, sets defaults and validates.
func TestTheInMemoryServerAppliesSchemas(t *testing.T) {
	c := connect(t, inMemory(t).Kubeconfig())
	c.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{"metadata":{"name":"disks.example.com"},"spec":{
		"group":"example.com","scope":"Namespaced","names":{"plural":"disks","singular":"disk","kind":"Disk","listKind":"DiskList"},
		"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","properties":{
			"spec":{"type":"object","required":["size"],"properties":{
				"size":{"type":"integer","minimum":1},"port":{"x-kubernetes-int-or-string":true},"tier":{"type":"string","default":"slow","enum":["slow","fast"]}}},
			"status":{"type":"object","properties":{"phase":{"type":"string"}}}}}}}]}}`)
	disks := "/apis/example.com/v1/namespaces/default/disks"
	disk := func(name, spec string) string {
		return `{"apiVersion":"example.com/v1","kind":"Disk","metadata":{"name":"` + name + `"},"spec":` + spec + `}`
	}
	made := c.create(disks, disk("a", `{"size":5,"port":"http","typo":1}`))
	spec, _ := made["spec"].(map[string]any)
	if spec["tier"] != "slow" || spec["port"] != "http" || spec["typo"] != nil {
		t.Errorf("got the spec %v", spec)
	}
	for _, bad := range []string{`{}`, `{"size":0}`, `{"size":"5"}`, `{"size":5,"tier":"warp"}`, `{"size":5,"port":true}`} {
		if code, body := c.do("POST", disks, disk("bad", bad)); code != http.StatusUnprocessableEntity {
			t.Errorf("%s: got %d %v, want 422", bad, code, body["message"])
		}
	}
	if code, body := c.do("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{"metadata":{"name":"x.example.com"},
		"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"y","kind":"Y"},"versions":[{"name":"v1","served":true,"storage":true}]}}`); code != http.StatusUnprocessableEntity {
		t.Errorf("a definition with a wrong name and no schema: got %d %v, want 422", code, body["message"])
	}
}

// A newcomer waits for the build of the in-memory server, so it must not depend on packages
// that take long to compile.
func TestTheInMemoryServerIsLean(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", memoryTags, "./cmd/gopf-memory")
	cmd.Dir = filepath.Join("..", "..", "..", "gopftest")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, heavy := range []string{"github.com/google/cel-go", "google.golang.org/grpc", "go.opentelemetry.io", "k8s.io/client-go/applyconfigurations", "k8s.io/client-go/discovery", "k8s.io/kubernetes"} {
		if strings.Contains(string(out), heavy) {
			t.Errorf("it depends on %s", heavy)
		}
	}
	if strings.Contains(string(out), "k8s.io/client-go/kubernetes/scheme\n") {
		t.Error("it depends on the alpha and beta versions of all groups")
	}
	if n := strings.Count(string(out), "\n"); n > 600 {
		t.Errorf("it has %d packages", n)
	}
}
