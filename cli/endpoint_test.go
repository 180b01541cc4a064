package cli

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// secured is an endpoint that requires the token "secret". It notes the tokens that it gets.
type secured struct {
	mu     sync.Mutex
	tokens []string
}

func (s *secured) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = append(s.tokens, req.Header.Get("Authorization"))
	if req.Header.Get("Authorization") != "Bearer secret" {
		http.Error(w, "a bearer token is missing", http.StatusUnauthorized)
		return
	}
	_, _ = w.Write([]byte("gopf_leading 1\n"))
}

func (s *secured) got() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.tokens, ",")
}

// kubeconfigOf writes a kubeconfig whose user has the fields.
func kubeconfigOf(t *testing.T, user string) string {
	t.Helper()
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
		"clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}], "users": [{"name": "u", "user": %s}]}`, user)
	return written(t, "config", text, 0o600)
}

func written(t *testing.T, name, text string, mode os.FileMode) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return file
}

func authorityOf(t *testing.T, server *httptest.Server) string {
	t.Helper()
	return written(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})), 0o600)
}

func topOnce(t *testing.T, url, user string, flags ...string) result {
	t.Helper()
	return call(t, append([]string{"top", "--once", "--interval=1s", "--url=" + url, "--kubeconfig=" + kubeconfigOf(t, user)}, flags...)...)
}

func TestTopSendsTheCredentialsOfTheUserToASecureEndpoint(t *testing.T) {
	plugin := written(t, "plugin", "#!/bin/sh\necho '"+`{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "secret"}}`+"'\n", 0o700)
	for name, user := range map[string]string{
		"token":       `{"token": "secret"}`,
		"token file":  `{"tokenFile": "` + written(t, "token", "secret", 0o600) + `"}`,
		"exec plugin": `{"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "` + plugin + `", "interactiveMode": "Never"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			var endpoint secured
			server := httptest.NewTLSServer(&endpoint)
			defer server.Close()
			if got := topOnce(t, server.URL, user, "--certificate-authority="+authorityOf(t, server)); got.code != 0 || !strings.Contains(got.stdout, "operator working") {
				t.Errorf("with the certificate authority: %+v", got)
			}
			if got := topOnce(t, server.URL, user, "--insecure-skip-tls-verify"); got.code != 0 || !strings.Contains(got.stdout, "operator working") {
				t.Errorf("on this computer, without verification: %+v", got)
			}
			if got := endpoint.got(); got != "Bearer secret,Bearer secret,Bearer secret,Bearer secret" {
				t.Errorf("the endpoint got %q", got)
			}
		})
	}
}

func TestTopPresentsAClientCertificateThatASecureEndpointRequests(t *testing.T) {
	cert, key := clientCertificate(t)
	user := fmt.Sprintf(`{"client-certificate-data": %q, "client-key-data": %q}`, base64.StdEncoding.EncodeToString(cert), base64.StdEncoding.EncodeToString(key))
	var names []string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		for _, c := range req.TLS.PeerCertificates {
			names = append(names, c.Subject.CommonName)
		}
		_, _ = w.Write([]byte("gopf_leading 1\n"))
	}))
	server.TLS = requestingCertificates()
	server.StartTLS()
	defer server.Close()
	if got := topOnce(t, server.URL, user, "--insecure-skip-tls-verify"); got.code != 0 || strings.Join(names, ",") != "jane,jane" {
		t.Errorf("the endpoint got %q: %+v", names, got)
	}
}

func TestTheTokenOfTheUserStaysSecret(t *testing.T) {
	const user = `{"token": "secret"}`
	var plain, elsewhere, unverified secured
	overHTTP := httptest.NewServer(&plain)
	defer overHTTP.Close()
	other := httptest.NewTLSServer(&elsewhere)
	defer other.Close()
	redirecting := httptest.NewTLSServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer redirecting.Close()
	selfSigned := httptest.NewTLSServer(&unverified)
	defer selfSigned.Close()

	if got := topOnce(t, overHTTP.URL, user); got.code != 1 || plain.got() != "" || !strings.Contains(got.stderr, "needs https") {
		t.Errorf("plain HTTP: the endpoint got %q: %+v", plain.got(), got)
	}
	if got := topOnce(t, redirecting.URL, user, "--insecure-skip-tls-verify"); got.code != 1 || elsewhere.got() != "" || !strings.Contains(got.stderr, "307") {
		t.Errorf("redirect: the other server got %q: %+v", elsewhere.got(), got)
	}
	if got := topOnce(t, selfSigned.URL, user); got.code != 1 || unverified.got() != "" || !strings.Contains(got.stderr, "--certificate-authority") {
		t.Errorf("unknown certificate: the endpoint got %q: %+v", unverified.got(), got)
	}
	if got := topOnce(t, "https://operator.example.com/metrics", user, "--insecure-skip-tls-verify"); got.code != 1 || !strings.Contains(got.stderr, "is not this computer") {
		t.Errorf("another computer without verification: %+v", got)
	}
}

func TestASecureEndpointNamesTheMissingToken(t *testing.T) {
	var endpoint secured
	server := httptest.NewTLSServer(&endpoint)
	defer server.Close()
	got := topOnce(t, server.URL, `{"username": "jane", "password": "pw"}`, "--insecure-skip-tls-verify")
	if got.code != 1 || endpoint.got() != "" || !strings.Contains(got.stderr, "401 unauthorized; a bearer token is missing; a secure endpoint needs https and a login with a token") {
		t.Errorf("the endpoint got %q: %+v", endpoint.got(), got)
	}
}
