package vectors_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/login"
	"gopf.dev/gopf/kind"
)

// authHeaders sends a request with the credentials of the case. The
// differences:
//   - there is no scheme in a configuration; where one is needed, the transport
//     is wrapped, as users would do it;
//   - a user without a password is sent with an empty one, as kubectl does.
func authHeaders(t *testing.T, v vector) {
	c := decode[struct {
		Info      struct{ Scheme, Token, Username, Password string }
		Headers   map[string]string
		BasicAuth any `json:"basic_auth"`
	}](t, v.JSON)
	if c.BasicAuth != nil {
		t.Fatal("no case was known that has basic_auth")
	}
	cfg := &rest.Config{BearerToken: c.Info.Token, Username: c.Info.Username, Password: c.Info.Password}
	if c.Info.Scheme != "" {
		cfg.BearerToken = ""
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return addHeader{next, "Authorization", strings.TrimSpace(c.Info.Scheme + " " + c.Info.Token)}
		})
	}
	want := c.Headers["Authorization"]
	if c.Info.Username != "" && c.Info.Password == "" {
		want = "Basic " + base64.StdEncoding.EncodeToString([]byte(c.Info.Username+":"))
	}
	got := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		fmt.Fprint(w, `{}`)
	}))
	defer server.Close()
	cfg.Host = server.URL
	client, err := kube.NewClient(cfg, kube.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Get(t.Context(), kube.Target{Info: kind.Info{Version: "v1", Plural: "nodes"}, Name: "n"}); err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("got the header %q, want %q", got, want)
	}
}

type addHeader struct {
	next        http.RoundTripper
	name, value string
}

func (a addHeader) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(a.name, a.value)
	return a.next.RoundTrip(r)
}

// kubeconfigDifference says how a kubeconfig is taken differently by client-go
// and kubectl, and so by us.
type kubeconfigDifference struct {
	why     string
	fails   string            // a part of our error, if we do not take it at all
	repair  map[string]string // what to change in the files so that we take it as the case says
	without []string          // the fields which that leaves out
	with    map[string]any    // the fields which we have besides
}

const plainServer = "no credentials are sent to a server without TLS"

// The differences in all cases:
//   - relative paths are those from the folder of the kubeconfig, and files
//     must exist;
//   - tls-server-name, tokenFile, as and exec are not ignored;
//   - the priority of the built-in login is 0, as there is only one, and proxies
//     are taken from the environment, too (trust_env).
var kubeconfigDifferences = map[string]kubeconfigDifference{
	"full with files": {
		why:   "there may be only one of token, password and plugin, and no authority for a server that is not verified",
		fails: "more than one authentication method found",
		repair: map[string]string{"username: un, password: pw, ": "", "client-certificate: /c": "client-certificate: c", "client-key: /k": "client-key: k",
			"insecure-skip-tls-verify: true, ": "", "tokenFile: /ignored, ": ""},
		without: []string{"username", "password", "insecure"},
		with:    map[string]any{"certificate_path": "c", "private_key_path": "k", "server_name": "ignored", "impersonate": "ignored"},
	},
	"full with inline data": {
		why:     "there may be only one of token, password and plugin, and no authority for a server that is not verified",
		fails:   "more than one authentication method found",
		repair:  map[string]string{"username: un, password: pw, ": "", "insecure-skip-tls-verify: true, ": "", "tokenFile: /ignored, ": ""},
		without: []string{"username", "password", "insecure"},
		with:    map[string]any{"server_name": "ignored", "impersonate": "ignored"},
	},
	"exec plugin is not supported: no token": {
		why:    "plugins are used, and need a version and a mode",
		fails:  "must be specified for u to use exec authentication plugin",
		repair: map[string]string{"command: aws": "command: aws, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never", "server: s": `server: "https://s"`},
		with:   map[string]any{"exec": "aws", "server": "https://s"},
	},
	"explicit token wins over auth-provider": {
		why:    plainServer,
		repair: map[string]string{"server: s": `server: "https://s"`},
		with:   map[string]any{"server": "https://s", "auth_provider": true},
	},
	"merged, first wins": {
		why:    plainServer,
		repair: map[string]string{"server: srv": `server: "https://srv"`},
		with:   map[string]any{"server": "https://srv"},
	},
	"null user/cluster bodies become empty": {why: "a cluster needs a server", fails: "no server found"},
}

// kubeconfigErrors are our errors for those of the cases.
var kubeconfigErrors = map[string]func(error) bool{
	"LoginError: Current context is not set in kubeconfigs.": hasProblem(kube.ConfigNoContext),
	"KeyError: 'c'": hasProblem(kube.ConfigNoCluster),
	"ValueError: Both CA path & data are set. Need only one.": func(err error) bool {
		return strings.Contains(err.Error(), "certificate-authority-data and certificate-authority are both specified")
	},
}

func hasProblem(p kube.ConfigProblem) func(error) bool {
	return func(err error) bool {
		e, ok := errors.AsType[*kube.ConfigError](err)
		return ok && e.Problem == p
	}
}

// kubeconfigLogin logs in with the kubeconfigs of the case.
func kubeconfigLogin(t *testing.T, v vector) {
	c := decode[struct {
		Title  string
		Files  []string
		Result map[string]any
	}](t, v.JSON)
	delete(c.Result, "priority")
	delete(c.Result, "trust_env")
	if text, fails := c.Result["error"].(string); fails {
		_, err := loadKubeconfigs(t, c.Files)
		if is, known := kubeconfigErrors[text]; err == nil || !known || !is(err) {
			t.Errorf("got the error %v, want one like %q", err, text)
		}
		return
	}
	if d, differs := kubeconfigDifferences[c.Title]; differs {
		t.Log("differs: " + d.why)
		if d.fails != "" {
			if _, err := loadKubeconfigs(t, c.Files); err == nil || !strings.Contains(err.Error(), d.fails) {
				t.Errorf("got the error %v, want %q", err, d.fails)
			}
			if d.repair == nil {
				return
			}
		}
		var pairs []string
		for from, to := range d.repair {
			if !strings.Contains(strings.Join(c.Files, ""), from) {
				t.Fatalf("there is no %q to repair", from)
			}
			pairs = append(pairs, from, to)
		}
		for i := range c.Files {
			c.Files[i] = strings.NewReplacer(pairs...).Replace(c.Files[i])
		}
		for _, field := range d.without {
			delete(c.Result, field)
		}
		maps.Copy(c.Result, d.with)
	}
	got, err := loadKubeconfigs(t, c.Files)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c.Result, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// loadKubeconfigs logs in as operators without login handlers do, and maps
// what that brings onto the fields of the cases.
func loadKubeconfigs(t *testing.T, texts []string) (map[string]any, error) {
	t.Helper()
	folder := t.TempDir()
	var paths []string
	for i, text := range texts {
		path := filepath.Join(folder, fmt.Sprintf("config%d", i))
		paths = append(paths, path)
		writeFile(t, path, text)
	}
	for _, name := range []string{"rel/ca.pem", "c", "k"} {
		writeFile(t, filepath.Join(folder, name), "PEM")
	}
	t.Setenv("KUBECONFIG", strings.Join(paths, string(filepath.ListSeparator)))
	found, err := login.Default("", "")(context.Background())
	if err != nil {
		return nil, err
	}
	creds := found["default"]
	if creds.Priority != 0 {
		t.Errorf("the priority is %d", creds.Priority)
	}
	return credentialFields(t, creds, folder), nil
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func credentialFields(t *testing.T, creds *login.Credentials, folder string) map[string]any {
	t.Helper()
	cfg := creds.Config
	fields := map[string]any{}
	put := func(name, value string) {
		if value != "" {
			fields[name] = value
		}
	}
	path := func(p string) string { return strings.TrimPrefix(p, folder+"/") }
	put("server", cfg.Host)
	put("default_namespace", creds.Namespace)
	put("ca_path", path(cfg.CAFile))
	put("ca_data", base64.StdEncoding.EncodeToString(cfg.CAData))
	put("certificate_path", path(cfg.CertFile))
	put("certificate_data", base64.StdEncoding.EncodeToString(cfg.CertData))
	put("private_key_path", path(cfg.KeyFile))
	put("private_key_data", base64.StdEncoding.EncodeToString(cfg.KeyData))
	put("username", cfg.Username)
	put("password", cfg.Password)
	put("token", cfg.BearerToken)
	put("server_name", cfg.ServerName)
	put("impersonate", cfg.Impersonate.UserName)
	if cfg.ExecProvider != nil {
		put("exec", cfg.ExecProvider.Command)
	}
	if cfg.AuthProvider != nil {
		fields["auth_provider"] = true
	}
	if cfg.Insecure {
		fields["insecure"] = true
	}
	if cfg.Proxy != nil {
		proxy, err := cfg.Proxy(&http.Request{})
		if err != nil {
			t.Fatal(err)
		}
		put("proxy_url", proxy.String())
	}
	return fields
}
