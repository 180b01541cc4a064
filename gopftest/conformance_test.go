package gopftest

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// behaviour is one test case of the API. Its recorded responses must be the same on the
// in-memory cluster and on a real control plane. Those of a real Kubernetes 1.37.1 are
// in testdata/conformance.
type behaviour struct {
	name string
	run  func(t *testing.T, s *script)
}

func behaviours() []behaviour {
	var all []behaviour
	for _, group := range [][]behaviour{
		creating(), updating(), patching(), applying(), statusSubresource(), deleting(), listing(), watching(),
		forms(), discovering(), defining(), schemas(), namespaces(), wellKnown(), scaling(), authorizing(),
		choosing(), validating(), merging(), following(), belonging(), reviewing(), numbering(),
	} {
		all = append(all, group...)
	}
	return all
}

// TestConformance compares the in-memory cluster with the recorded responses of a real
// control plane.
func TestConformance(t *testing.T) {
	for _, b := range behaviours() {
		t.Run(b.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := NewCluster(t, wellKnownKinds()...)
				compare(t, b, conform(t, b, c.RESTConfig(), func(s *script) {
					s.expire = c.Expire
					hosts := 0
					s.serve = func(h http.Handler) string {
						hosts++
						host := fmt.Sprintf("hooks-%d.test", hosts)
						c.ServeWebhooks(host, h)
						return `{"url":"https://` + host + `/"}`
					}
				}))
			})
		})
	}
}

// atATime limits the parallel test cases on a real control plane. Most of them spend
// most of their time waiting.
const atATime = 6

// TestConformanceOfTheRealAPI compares a real control plane with the recorded responses.
// GOPF_TEST_KUBECONFIG is the path of its kubeconfig. GOPF_TEST_RECORD=1 records new
// responses.
//
// The namespaces stay. Deleting them all would keep the API server busy for minutes, and
// other tests wait for namespace deletions. "gopf exec" discards the whole cluster.
func TestConformanceOfTheRealAPI(t *testing.T) {
	kubeconfig := os.Getenv(Variable)
	if kubeconfig == "" {
		t.Skip("there is no real control plane: set " + Variable)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	var running sync.WaitGroup
	slots := make(chan struct{}, atATime)
	for _, b := range behaviours() {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			t.Run(b.name, func(t *testing.T) {
				transcript := conform(t, b, cfg, func(s *script) { s.serve = func(h http.Handler) string { return serveTLS(t, h) } })
				if os.Getenv("GOPF_TEST_RECORD") != "" {
					record(t, b, transcript)
				}
				compare(t, b, transcript)
			})
		})
	}
	running.Wait()
}

// wellKnownKinds are the built-in kinds that the test cases use.
func wellKnownKinds() []string {
	return []string{
		"v1/configmaps", "v1/secrets", "v1/pods", "v1/replicationcontrollers",
		"apps/v1/deployments", "apps/v1/statefulsets", "apps/v1/replicasets",
		"roles", "rolebindings", "clusterroles", "clusterrolebindings",
		"validatingwebhookconfigurations", "mutatingwebhookconfigurations",
	}
}

// conform runs a test case in a new namespace.
func conform(t *testing.T, b behaviour, cfg *rest.Config, equip func(*script)) string {
	t.Helper()
	s := newScript(t, cfg, fmt.Sprintf("conformance-%08x", rand.Uint32()))
	equip(s)
	for _, crd := range definitions() {
		if r := s.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd); r.code != 201 && r.code != 409 {
			t.Fatalf("create a definition: %v", r)
		}
	}
	for _, plural := range []string{"widgets", "gadgets", "orders", "fleets"} {
		s.eventually("GET", "/apis/conformance.gopf.dev/v1/"+plural, func(r reply) bool { return r.code == 200 })
	}
	s.send("POST", "/api/v1/namespaces", `{"metadata":{"name":"{ns}"}}`)
	b.run(t, s)
	return s.transcript()
}

func golden(b behaviour) string {
	name := regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(b.name), "-")
	return filepath.Join("testdata", "conformance", name+".txt")
}

func record(t *testing.T, b behaviour, transcript string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(golden(b)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(golden(b), []byte(transcript), 0o644); err != nil {
		t.Fatal(err)
	}
}

func compare(t *testing.T, b behaviour, transcript string) {
	t.Helper()
	want, err := os.ReadFile(golden(b))
	if err != nil {
		t.Fatal(err)
	}
	recorded, now := strings.Split(string(want), "\n"), strings.Split(transcript, "\n")
	for i := range max(len(recorded), len(now)) {
		if i >= len(recorded) || i >= len(now) || recorded[i] != now[i] {
			t.Errorf("differs from the real API server:\n%s\nrecorded: %s\nnow:      %s",
				strings.Join(now[max(0, i-1):min(i, len(now))], "\n"), at(recorded, i), at(now, i))
		}
	}
}

func at(lines []string, i int) string {
	if i >= len(lines) {
		return "(the end)"
	}
	return lines[i]
}

// definitions returns the custom resources that the test cases use: widgets with a
// status subresource, gadgets without one and cluster-scoped, orders with a schema and
// two versions, and fleets with a scale subresource.
func definitions() []string {
	anything := `{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}`
	return []string{
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.conformance.gopf.dev"},"spec":{
			"group":"conformance.gopf.dev","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget","shortNames":["wdg"],"categories":["gopf"]},
			"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},"schema":` + anything + `}]}}`,
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gadgets.conformance.gopf.dev"},"spec":{
			"group":"conformance.gopf.dev","scope":"Cluster","names":{"plural":"gadgets","kind":"Gadget"},
			"versions":[{"name":"v1","served":true,"storage":true,"schema":` + anything + `}]}}`,
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"orders.conformance.gopf.dev"},"spec":{
			"group":"conformance.gopf.dev","scope":"Namespaced","names":{"plural":"orders","kind":"Order"},
			"versions":[
				{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},
				 "additionalPrinterColumns":[{"name":"Item","type":"string","jsonPath":".spec.item"},{"name":"Count","type":"integer","jsonPath":".spec.count"}],
				 "selectableFields":[{"jsonPath":".spec.item"}],
				 "schema":{"openAPIV3Schema":{"type":"object","required":["spec"],"properties":{
					"spec":{"type":"object","required":["item"],"properties":{
						"item":{"type":"string","minLength":2},
						"count":{"type":"integer","default":1,"minimum":0},
						"color":{"type":"string","enum":["red","green"]},
						"notes":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}},
					"status":{"type":"object","properties":{"done":{"type":"boolean"},"phase":{"type":"string","default":"New"}}}}}}},
				{"name":"v1beta1","served":true,"storage":false,
				 "schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`,
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"fleets.conformance.gopf.dev"},"spec":{
			"group":"conformance.gopf.dev","scope":"Namespaced","names":{"plural":"fleets","kind":"Fleet"},
			"versions":[{"name":"v1","served":true,"storage":true,
				"subresources":{"status":{},"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas","labelSelectorPath":".status.selector"}},
				"schema":{"openAPIV3Schema":{"type":"object","properties":{
					"spec":{"type":"object","properties":{"item":{"type":"string"},"replicas":{"type":"integer","maximum":100}}},
					"status":{"type":"object","properties":{"replicas":{"type":"integer"},"selector":{"type":"string"}}}}}}}]}}`,
	}
}
