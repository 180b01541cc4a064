package peering

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/test/e2e/kit"
	"gopf.dev/gopf/kind"
)

// cluster returns a client of a real control plane with the resources of peering.yaml,
// and a namespace for the test. It skips the test if there is none. Tests of other
// packages can create the resources of zalando.org on the same control plane at any
// time, so only those of kopf.dev are returned.
func cluster(t *testing.T) (client *kube.Client, resources []kind.Info, ns string) {
	t.Helper()
	client, ns = kit.Client(t, kit.Existing(t, "../../peering.yaml"), "peering-test-")
	d, err := client.Discover(t.Context(), "kopf.dev")
	if err != nil {
		t.Fatal(err)
	}
	return client, d.Resources, ns
}

// participant is a member on a real cluster.
type participant struct {
	*Member
	changes chan bool
	stop    func()
}

func join(t *testing.T, client *kube.Client, place Place, identity string, priority int, adjust ...func(*Config)) *participant {
	t.Helper()
	p := &participant{changes: make(chan bool, 100)}
	c := DefaultConfig(client, place)
	c.Identity, c.Priority = identity, priority
	c.Toggle = func(paused bool, _ string) { p.changes <- paused }
	for _, a := range adjust {
		a(&c)
	}
	p.Member = New(c)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); p.Run(ctx) }()
	p.stop = func() { cancel(); <-done }
	t.Cleanup(p.stop)
	return p
}

func (p *participant) awaits(t *testing.T, paused bool) {
	t.Helper()
	limit := time.After(kit.Patience)
	for p.Paused() != paused {
		select {
		case <-p.changes:
		case <-limit:
			t.Fatalf("%s did not reach paused=%v in time", p.Identity, paused)
		}
	}
}

func statusOnCluster(t *testing.T, client *kube.Client, place Place) map[string]any {
	t.Helper()
	b, err := client.Get(t.Context(), kube.Target{Info: place.Info, Namespace: place.Namespace, Name: "default"})
	if err != nil {
		t.Fatal(err)
	}
	return status(b)
}

func TestClusterPeering(t *testing.T) {
	t.Parallel()
	client, infos, ns := cluster(t)
	resources := Resources(infos, false)
	if len(resources) != 1 || len(Resources(infos, true)) != 1 {
		t.Fatalf("got %v", resources)
	}
	place := Place{resources[0], ns}

	if err := Resume(t.Context(), client, "default", []Place{place}, "x"); !errors.As(err, new(*MissingError)) {
		t.Errorf("without an object: got %v", err)
	}
	low := join(t, client, place, "low@host/1", 0, func(c *Config) { c.Mandatory = true })
	low.awaits(t, true)

	// The object is created with an expired record.
	dead := Record{Identity: "dead@host/x", Priority: 1000, Lifetime: 3 * time.Second, LastSeen: time.Now().Add(-time.Hour)}
	body, _ := json.Marshal(map[string]any{"apiVersion": "kopf.dev/v1", "kind": "KopfPeering", "metadata": map[string]any{"name": "default"},
		"status": map[string]any{dead.Identity: dead.Value()}})
	if _, err := client.Create(t.Context(), kube.Target{Info: place.Info, Namespace: ns}, body); err != nil {
		t.Fatal(err)
	}
	low.awaits(t, false)

	high := join(t, client, place, "high@host/2", 10)
	low.awaits(t, true)
	if high.Paused() {
		t.Error("both are paused")
	}
	for limit := time.Now().Add(kit.Patience); ; time.Sleep(50 * time.Millisecond) {
		if s := statusOnCluster(t, client, place); s["low@host/1"] != nil && s["high@host/2"] != nil {
			break
		} else if time.Now().After(limit) {
			t.Fatalf("got %v", s)
		}
	}
	high.stop()
	low.awaits(t, false)

	equal := join(t, client, place, "equal@host/3", 0)
	equal.awaits(t, true)
	low.awaits(t, true)
	equal.stop()
	low.awaits(t, false)

	// A peer dies without removing its record.
	ghost := Record{Identity: "ghost", Priority: 5, Lifetime: 8 * time.Second, LastSeen: time.Now()}
	if err := Freeze(t.Context(), client, "default", []Place{place}, ghost); err != nil {
		t.Fatal(err)
	}
	low.awaits(t, true)
	low.awaits(t, false)
	limit := time.Now().Add(kit.Patience)
	for {
		s := statusOnCluster(t, client, place)
		if s["ghost"] == nil && s[dead.Identity] == nil {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("expired records remain: %v", s)
		}
		time.Sleep(50 * time.Millisecond)
	}
	low.stop()
	if s := statusOnCluster(t, client, place); len(s) != 0 {
		t.Errorf("records remain: %v", s)
	}
}

const withStatus = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: kopfpeerings.peering.test}
spec:
  group: peering.test
  scope: Namespaced
  names: {kind: KopfPeering, plural: kopfpeerings, singular: kopfpeering}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, properties: {status: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
`

// The removal of expired records requires the version there, too.
func TestClusterPeeringWithStatusAsASubresource(t *testing.T) {
	t.Parallel()
	client, _, ns := cluster(t)
	file := filepath.Join(t.TempDir(), "crd.yaml")
	text := fmt.Sprintf("%s---\napiVersion: peering.test/v1\nkind: KopfPeering\nmetadata: {namespace: %s, name: default}\n", withStatus, ns)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	kit.Existing(t, file)
	d, err := client.Discover(t.Context(), "peering.test")
	if err != nil || len(d.Resources) != 1 || !d.Resources[0].HasStatus() {
		t.Fatalf("got %v, %v", d, err)
	}
	place := Place{d.Resources[0], ns}
	ghost := Record{Identity: "ghost", Priority: 5, Lifetime: 8 * time.Second, LastSeen: time.Now()}
	if err := Freeze(t.Context(), client, "default", []Place{place}, ghost); err != nil {
		t.Fatal(err)
	}
	m := join(t, client, place, "me@host/5", 0)
	m.awaits(t, true)
	m.awaits(t, false)
	for limit := time.Now().Add(kit.Patience); ; time.Sleep(50 * time.Millisecond) {
		if s := statusOnCluster(t, client, place); s["ghost"] == nil && s["me@host/5"] != nil {
			break
		} else if time.Now().After(limit) {
			t.Fatalf("got %v", s)
		}
	}
	// A record that was seen as expired is not removed in a later version.
	w := newWriter(m.Config)
	w.dead = order{dead: []string{"me@host/5"}, version: "1"}
	w.tidy(t.Context())
	if s := statusOnCluster(t, client, place); s["me@host/5"] == nil {
		t.Error("the version was ignored")
	}
}

func TestClusterWidePeering(t *testing.T) {
	t.Parallel()
	client, infos, _ := cluster(t)
	place := Place{Info: Resources(infos, true)[0]}
	m := join(t, client, place, "me@host/4", 0, func(c *Config) { c.Mandatory = true })
	m.awaits(t, false)
	if err := Freeze(t.Context(), client, "default", []Place{place}, Record{Identity: "human", Priority: 100, Lifetime: time.Minute, LastSeen: time.Now()}); err != nil {
		t.Fatal(err)
	}
	m.awaits(t, true)
	if err := Resume(t.Context(), client, "default", []Place{place}, "human"); err != nil {
		t.Fatal(err)
	}
	m.awaits(t, false)
	m.stop()
	if s := statusOnCluster(t, client, place); len(s) != 0 {
		t.Errorf("records remain: %v", s)
	}
}
