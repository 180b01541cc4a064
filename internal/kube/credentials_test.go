package kube

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// client-go's support for credentials must work with our own transports, over real
// connections.

// bouncer is a server that accepts one client.
type bouncer struct {
	*httptest.Server
	mu      sync.Mutex
	allowed string   // its token, or the common name of its certificate
	seen    []string // the clients, and whether they were accepted
	resumed int      // the requests on connections that resumed a TLS session
}

func (b *bouncer) allow(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed = name
}

func (b *bouncer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.TLS.DidResume {
		b.resumed++
	}
	name := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if len(r.TLS.PeerCertificates) > 0 {
		name = r.TLS.PeerCertificates[0].Subject.CommonName
	}
	if as := r.Header.Get("Impersonate-User"); as != "" {
		name += " as " + as
	}
	if name != b.allowed {
		b.seen = append(b.seen, "no "+name)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	b.seen = append(b.seen, name)
	io.WriteString(w, onePod)
}

func (b *bouncer) requests() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.seen, ", ")
}

func (b *bouncer) resumptions() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.resumed
}

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{key: newKey(t)}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sign returns a certificate and its key as PEM.
func (a *authority) sign(t *testing.T, name string, hosts ...string) (cert, key []byte) {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: hosts,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	own := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &own.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalECPrivateKey(own)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})
}

// open starts a bouncer with the host name api.test.
func (a *authority) open(t *testing.T) *bouncer {
	t.Helper()
	b := &bouncer{}
	b.Server = httptest.NewUnstartedServer(b)
	cert, key := a.sign(t, "server", "api.test")
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(a.cert)
	b.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.VerifyClientCertIfGiven}
	b.EnableHTTP2 = true
	b.StartTLS()
	t.Cleanup(b.Close)
	return b
}

func (b *bouncer) config(ca []byte) *rest.Config {
	return &rest.Config{Host: b.URL, TLSClientConfig: rest.TLSClientConfig{ServerName: "api.test", CAData: ca}}
}

func quickClient(t *testing.T, cfg *rest.Config) *Client {
	t.Helper()
	client, err := NewClient(cfg, DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func mustGet(t *testing.T, client *Client) {
	t.Helper()
	if err := get(t.Context(), client); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	// Replace the file atomically, as the kubelet does.
	if err := os.WriteFile(path+".new", content, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestTokenFilesAreReadAgain(t *testing.T) {
	ca := newAuthority(t)
	b := ca.open(t)
	cfg := b.config(ca.pem)
	cfg.BearerTokenFile = filepath.Join(t.TempDir(), "token")
	write(t, cfg.BearerTokenFile, []byte("one\n"))
	b.allow("one")
	client := quickClient(t, cfg)
	mustGet(t, client)
	theirs, err := rest.HTTPClientFor(client.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}

	write(t, cfg.BearerTokenFile, []byte("two\n"))
	b.allow("two")
	mustGet(t, client)
	if got, want := b.requests(), "one, no one, two"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	mustGet(t, client)
	resp, err := theirs.Get(b.URL + "/api/v1/pods")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("a client of a user: got %v, %v", resp, err)
	}
	if client.Host() != b.URL {
		t.Error("the host has changed")
	}
}

func TestExecPluginsAreCalledAgain(t *testing.T) {
	ca := newAuthority(t)
	b := ca.open(t)
	folder := t.TempDir()
	token, expires := filepath.Join(folder, "token"), filepath.Join(folder, "expires")
	write(t, filepath.Join(folder, "plugin"), fmt.Appendf(nil, `#!/bin/sh
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"'$(cat %s)'","expirationTimestamp":"'$(cat %s)'"}}'
`, token, expires))
	set := func(name string, valid time.Duration) {
		write(t, expires, []byte(time.Now().Add(valid).UTC().Format(time.RFC3339)))
		write(t, token, []byte(name))
	}
	cfg := b.config(ca.pem)
	cfg.ExecProvider = &clientcmdapi.ExecConfig{Command: filepath.Join(folder, "plugin"),
		APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode}
	client := quickClient(t, cfg)

	set("one", time.Hour)
	b.allow("one")
	mustGet(t, client)
	set("two", 2*time.Second) // expiry times have whole seconds
	b.allow("two")
	mustGet(t, client) // after a 401
	set("three", time.Hour)
	time.Sleep(2100 * time.Millisecond)
	b.allow("three")
	mustGet(t, client) // after the expiry
	if got, want := b.requests(), "one, no one, two, two, three"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestClientCertificatesAreReadAgain(t *testing.T) {
	ca := newAuthority(t)
	b := ca.open(t)
	folder := t.TempDir()
	cfg := b.config(ca.pem)
	cfg.CertFile, cfg.KeyFile = filepath.Join(folder, "cert"), filepath.Join(folder, "key")
	set := func(name string) {
		cert, key := ca.sign(t, name)
		write(t, cfg.CertFile, cert)
		write(t, cfg.KeyFile, key)
	}
	set("one")
	b.allow("one")
	client := quickClient(t, cfg)
	mustGet(t, client)
	set("two")
	b.allow("two")
	mustGet(t, client) // still on the open connection
	if got, want := b.requests(), "one, no one, two"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestClientCertificatesAreRenewedBeforeTheyAreRejected(t *testing.T) {
	ca := newAuthority(t)
	b := ca.open(t)
	folder := t.TempDir()
	cfg := b.config(ca.pem)
	cfg.CertFile, cfg.KeyFile = filepath.Join(folder, "cert"), filepath.Join(folder, "key")
	set := func(cert, key []byte) {
		write(t, cfg.CertFile, cert)
		write(t, cfg.KeyFile, key)
	}
	set(ca.sign(t, "one"))
	b.allow("one")
	client := quickClient(t, cfg)
	old := client.shared.conns.Load()
	if client.renew(old, 0) {
		t.Error("reconnected with unchanged files")
	}
	write(t, cfg.KeyFile, []byte("half written"))
	if client.renew(old, 0) {
		t.Error("used a key that does not match its certificate")
	}
	set(ca.sign(t, "two"))
	if client.renew(old, time.Minute) {
		t.Error("the files were read too often")
	}
	if !client.renew(old, 0) || client.shared.conns.Load() == old {
		t.Error("changed files were not used")
	}
	b.allow("two")
	mustGet(t, client)
	if got := b.requests(); got != "two" {
		t.Errorf("got %s", got)
	}
}

func TestAuthoritiesAreReadAgain(t *testing.T) {
	before, after := newAuthority(t), newAuthority(t)
	b := before.open(t)
	b.allow("t")
	cfg := b.config(nil)
	cfg.BearerToken = "t"
	cfg.CAFile = filepath.Join(t.TempDir(), "ca")
	write(t, cfg.CAFile, before.pem)
	client := quickClient(t, cfg)
	mustGet(t, client)

	// The server restarts with a certificate of another authority.
	b.CloseClientConnections()
	cert, key := after.sign(t, "server", "api.test")
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	b.TLS.Certificates[0] = pair
	write(t, cfg.CAFile, after.pem)
	time.Sleep(time.Second) // files are read once per second at most
	mustGet(t, client)
}

func TestImpersonation(t *testing.T) {
	ca := newAuthority(t)
	b := ca.open(t)
	cfg := b.config(ca.pem)
	cfg.BearerToken = "me"
	cfg.Impersonate.UserName = "you"
	b.allow("me as you")
	mustGet(t, quickClient(t, cfg))
}

// loadKubeconfig writes a kubeconfig and loads it.
func loadKubeconfig(t *testing.T, cluster, user string) *rest.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	write(t, path, fmt.Appendf(nil, `
current-context: x
contexts: [{name: x, context: {cluster: x, user: x}}]
clusters: [{name: x, cluster: %s}]
users: [{name: x, user: %s}]
`, cluster, user))
	cfg, _, err := LoadConfig(path, "")
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestProxyAndServerNameOfAKubeconfig(t *testing.T) {
	ca := newAuthority(t)
	b := ca.open(t)
	b.allow("t")
	asked := ""
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.Host
		there, err := net.Dial("tcp", b.Listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		w.WriteHeader(http.StatusOK)
		here, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		go io.Copy(there, here)
		go func() { io.Copy(here, there); here.Close() }()
	}))
	defer proxy.Close()
	cfg := loadKubeconfig(t, fmt.Sprintf(`{server: "https://far.away:6443", proxy-url: %q, tls-server-name: api.test, certificate-authority-data: %s}`,
		proxy.URL, base64.StdEncoding.EncodeToString(ca.pem)), `{token: t}`)
	mustGet(t, quickClient(t, cfg))
	if asked != "CONNECT far.away:6443" {
		t.Errorf("got %q", asked)
	}
}

func TestOIDCTokensAreRefreshed(t *testing.T) {
	ca := newAuthority(t)
	b := ca.open(t)
	idToken := func(valid time.Duration) string {
		claims, _ := json.Marshal(map[string]any{"exp": time.Now().Add(valid).Unix()})
		part := base64.RawURLEncoding.EncodeToString
		return part([]byte(`{}`)) + "." + part(claims) + "." + part([]byte("signature"))
	}
	fresh := idToken(time.Hour)
	b.allow(fresh)
	var provider *httptest.Server
	provider = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "openid-configuration") {
			fmt.Fprintf(w, `{"token_endpoint":%q}`, provider.URL+"/token")
			return
		}
		fmt.Fprintf(w, `{"access_token":"a","token_type":"Bearer","id_token":%q}`, fresh)
	}))
	defer provider.Close()
	cfg := loadKubeconfig(t, fmt.Sprintf(`{server: %q, tls-server-name: api.test, certificate-authority-data: %s}`,
		b.URL, base64.StdEncoding.EncodeToString(ca.pem)),
		fmt.Sprintf(`{auth-provider: {name: oidc, config: {idp-issuer-url: %q, client-id: me, refresh-token: r, id-token: %s}}}`,
			provider.URL, idToken(-time.Hour)))
	mustGet(t, quickClient(t, cfg))
}
