package login

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestTheDefaultLoginReadsTheKubeconfigEachTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	login := Default(path, "")
	if _, err := login(t.Context()); err == nil {
		t.Error("without a file: got no error")
	}
	for _, token := range []string{"one", "two"} {
		text := `{current-context: x, contexts: [{name: x, context: {cluster: x, user: x, namespace: mine}}],
			clusters: [{name: x, cluster: {server: "https://server"}}], users: [{name: x, user: {token: ` + token + `}}]}`
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := login(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if c := found["default"]; c.Config.BearerToken != token || c.Namespace != "mine" || c.Priority != 0 || !c.Expires.IsZero() {
			t.Errorf("got %+v", c)
		}
	}
}

func TestFixedCredentials(t *testing.T) {
	cfg := &rest.Config{Host: "https://server"}
	found, err := Fixed(cfg, "mine")(t.Context())
	if err != nil || len(found) != 1 || found["fixed"].Config != cfg || found["fixed"].Namespace != "mine" {
		t.Errorf("got %v, %v", found, err)
	}
}

func TestFingerprints(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cert")
	if err := os.WriteFile(file, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	changes := map[string]func(*rest.Config){
		"host":           func(c *rest.Config) { c.Host = "https://other" },
		"authority":      func(c *rest.Config) { c.CAData = []byte("other") },
		"server name":    func(c *rest.Config) { c.ServerName = "other" },
		"user":           func(c *rest.Config) { c.Username = "other" },
		"password":       func(c *rest.Config) { c.Password = "other" },
		"token":          func(c *rest.Config) { c.BearerToken = "other" },
		"token file":     func(c *rest.Config) { c.BearerTokenFile = "other" },
		"certificate":    func(c *rest.Config) { c.CertData = []byte("other") },
		"cert file":      func(c *rest.Config) { c.CertFile = file },
		"impersonation":  func(c *rest.Config) { c.Impersonate.Groups = []string{"other"} },
		"exec command":   func(c *rest.Config) { c.ExecProvider = &clientcmdapi.ExecConfig{Command: "other"} },
		"exec arguments": func(c *rest.Config) { c.ExecProvider = &clientcmdapi.ExecConfig{Args: []string{"other"}} },
		"provider":       func(c *rest.Config) { c.AuthProvider = &clientcmdapi.AuthProviderConfig{Name: "oidc"} },
	}
	seen := map[fingerprint]string{fingerprintOf(&rest.Config{Host: "https://server"}): "no credentials"}
	for name, change := range changes {
		c := &rest.Config{Host: "https://server"}
		change(c)
		mark := fingerprintOf(c)
		if other, same := seen[mark]; same {
			t.Errorf("%s has the same fingerprint as %s", name, other)
		}
		seen[mark] = name
		if fingerprintOf(rest.CopyConfig(c)) != mark {
			t.Errorf("%s: a copy has another fingerprint", name)
		}
	}
	c := &rest.Config{Host: "https://server", QPS: 5, UserAgent: "me", TLSClientConfig: rest.TLSClientConfig{CertFile: file}}
	if seen[fingerprintOf(c)] != "cert file" {
		t.Error("unrelated settings change the fingerprint")
	}
	if err := os.WriteFile(file, []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, same := seen[fingerprintOf(c)]; same {
		t.Error("the content of the certificate does not change the fingerprint")
	}
}
