package metacontroller

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// webhookAuth has hooks that demand a client certificate and a token.
var webhookAuth = example{
	name: "webhook-auth", kinds: []gopftest.Kind{{Plural: "authsharings", Kind: "AuthSharing"}},
	controllers: strings.Replace(withCustomize("authsharings", "{apiVersion: v1, resource: secrets, updateStrategy: {method: InPlace}}", V1), "\nspec:\n", `
spec:
  endpointConfigs:
    - host: 127.0.0.1
      caBundle: {configMapRef: {name: hook-ca, namespace: $NS}}
      clientTLS: {secretRef: {name: hook-client, namespace: $NS}}
      authorization: {secretRef: {name: hook-token, namespace: $NS, key: token}}
`, 1),
	hooks: secretHooks,
	server: func(z zoo, hooks http.Handler) string {
		cert, key, pool := clientCertificate(z.t)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer secret" {
				http.Error(w, "no token", http.StatusUnauthorized)
				return
			}
			hooks.ServeHTTP(w, r)
		}))
		server.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
		server.StartTLS()
		z.t.Cleanup(server.Close)
		ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		z.create(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "hook-ca"}, "data": map[string]any{"ca.crt": string(ca)}})
		z.create(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "hook-client"}, "stringData": map[string]any{"tls.crt": cert, "tls.key": key}})
		z.create(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "hook-token"}, "stringData": map[string]any{"token": "secret\n"}})
		return server.URL
	},
	live: func(t *testing.T, z zoo) {
		alpha := z.space("al", "share: $NS")
		z.apply("{apiVersion: v1, kind: Secret, metadata: {name: shared, namespace: $NS}, data: {a: MQ==}}")
		z.apply("{apiVersion: zoo.example.com/v1, kind: AuthSharing, metadata: {name: $NS}, spec: {sourceNamespace: $NS}}")
		z.Wait(t, secrets, alpha, "shared", is("MQ==", "data", "a"))
	},
}

// clientCertificate returns a certificate of a client and its key as PEM, and a pool that
// trusts it.
func clientCertificate(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return string(text), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), pool
}

// TestTheExampleOfLeaderElectionOnAnyCluster runs two replicas. Only the leader calls hooks, and
// the other one continues when the leader stops. A replica that stops releases the Lease after its
// last call of a hook.
func TestTheExampleOfLeaderElectionOnAnyCluster(t *testing.T) {
	t.Parallel()
	c := gopftest.AnyCluster(t, configmaps, "coordination.k8s.io/v1/leases")
	c.Load(t, "testdata/definitions.yaml")
	c.Define(t, gopftest.Kind{Group: zooGroup, Version: "v1", Plural: "electeds", Kind: "Elected", Namespaced: true, StatusSubresource: true})
	ns := c.Namespace(t)
	z := zoo{c, t, ns, "elected-" + ns[len(ns)-5:]}
	replica := func(name string) (stop func()) {
		e := example{hooks: map[string]func(asked) map[string]any{"sync": func(a asked) map[string]any {
			return children(map[string]any{"value": a.spec("value")}, objectOf("{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {value: %s}}", a.spec("value")))
		}}}
		hooks := e.hookServer(t)
		op := gopf.New(gopf.Identity("metacontroller.example.com"))
		op.Settings.Peering.Standalone = true // other tests define peerings
		op.Settings.Election = gopf.ElectionSettings{
			Enabled: true, Name: "metacontroller", Namespace: ns, Identity: name, Duration: 10 * time.Second, RenewDeadline: 8 * time.Second, RetryPeriod: 200 * time.Millisecond,
		}
		Declare(op, Options{Target: labels.SelectorFromSet(labels.Set{"test": ns}), Discovery: time.Second, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			lease, _ := c.Lookup(t, "coordination.k8s.io/v1/leases", ns, "metacontroller")
			if holder := scalar(lease, "spec", "holderIdentity"); holder != name {
				t.Errorf("%s calls a hook while the holder of the Lease is %q", name, holder)
			}
			w := httptest.NewRecorder()
			hooks.ServeHTTP(w, r)
			return w.Result(), nil
		})})
		return gopftest.Start(t, op, c)
	}
	stop := replica("first")
	z.controllers(composite("electeds", inPlaceConfigMaps), "http://hooks.test", ns)
	z.apply("{apiVersion: zoo.example.com/v1, kind: Elected, metadata: {name: e, namespace: $NS}, spec: {value: one}}")
	z.field(configmaps, "c", "one", "data", "value")
	replica("second")
	for i := range 3 {
		z.patch("zoo.example.com/v1/electeds", "e", "{spec: {value: v%d}}", i)
		z.field(configmaps, "c", fmt.Sprint("v", i), "data", "value")
	}
	stop()
	z.patch("zoo.example.com/v1/electeds", "e", "{spec: {value: last}}")
	z.field(configmaps, "c", "last", "data", "value")
	z.Wait(t, "coordination.k8s.io/v1/leases", ns, "metacontroller", func(o *unstructured.Unstructured) bool { return scalar(o, "spec", "holderIdentity") == "second" })
}

// roundTripper is an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
