package vectors_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/login"
	"gopf.dev/gopf/kind"
)

// authHeaders sends a request with the credentials of the case. The
// differences:
//   - there is no scheme in a configuration; where one is needed, the transport
//     is wrapped, as users would do it;
//   - a user without a password is sent with an empty one, as kubectl does;
//   - basic_auth is seen as the header that comes of it.
func authHeaders(t *testing.T, v vector) {
	c := decode[struct {
		Info    struct{ Scheme, Token, Username, Password string }
		Headers map[string]string
	}](t, v.JSON)
	cfg := &rest.Config{BearerToken: c.Info.Token, Username: c.Info.Username, Password: c.Info.Password}
	if c.Info.Scheme != "" {
		cfg.BearerToken = ""
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return addHeader{next, "Authorization", strings.TrimSpace(c.Info.Scheme + " " + c.Info.Token)}
		})
	}
	want := c.Headers["Authorization"]
	if c.Info.Username != "" { // basic_auth, which is a header in the end
		want = "Basic " + base64.StdEncoding.EncodeToString([]byte(c.Info.Username+":"+c.Info.Password))
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

// kubeconfigDifference is a way in which client-go and kubectl, and so we, take
// a kubeconfig differently.
type kubeconfigDifference struct {
	why string
	// fails is a part of our error if we do not take it at all.
	fails string
	// mend changes a cluster or a user so that we take it as the case says, and
	// what the case wants where we have something else. It tells whether it is
	// about this one.
	mend func(body, want map[string]any) bool
}

// The differences in all cases: the priority of the built-in login is 0, as
// there is only one, and proxies are taken from the environment, too
// (trust_env).
var kubeconfigDifferences = map[string][]kubeconfigDifference{
	"cluster": {
		{"a cluster needs a server", "no server found", func(body, want map[string]any) bool {
			if body["server"] != nil {
				return false
			}
			body["server"], want["server"] = "https://s", "https://s"
			return true
		}},
		{"no credentials are sent to a server without TLS", "", func(body, want map[string]any) bool {
			if server := body["server"].(string); !strings.Contains(server, "://") {
				body["server"], want["server"] = "https://"+server, "https://"+server
				return true
			}
			return false
		}},
		{"files must exist", "unable to read certificate-authority", belowFolder("certificate-authority", "ca_path")},
		{"tls-server-name is used", "", alsoHas("tls-server-name", "server_name")},
	},
	"user": {
		{"there may be only one of token and password", "more than one authentication method found", func(body, want map[string]any) bool {
			both := body["token"] != nil && body["username"] != nil
			if both {
				for _, field := range []string{"username", "password"} {
					delete(body, field)
					delete(want, field)
				}
			}
			return both
		}},
		{"files must exist", "unable to read client-cert", belowFolder("client-certificate", "certificate_path")},
		{"files must exist", "unable to read client-key", belowFolder("client-key", "private_key_path")},
		{"token files are used", "", alsoHas("tokenFile", "token_file")},
		{"impersonation is used", "", alsoHas("as", "impersonate")},
		{"plugins are used, and need a version and a mode", "must be specified for u to use exec", func(body, want map[string]any) bool {
			exec, ok := body["exec"].(map[string]any)
			if ok {
				exec["apiVersion"], exec["interactiveMode"] = "client.authentication.k8s.io/v1", "Never"
				want["exec"] = exec["command"]
			}
			return ok
		}},
	},
}

// belowFolder has a file looked for where there is one: relative paths are
// those from the folder of the kubeconfig.
func belowFolder(field, wanted string) func(body, want map[string]any) bool {
	return func(body, want map[string]any) bool {
		path, _ := body[field].(string)
		if path != "" {
			path = strings.TrimPrefix(path, "/")
			body[field], want[wanted] = path, path
		}
		return path != ""
	}
}

func alsoHas(field, wanted string) func(body, want map[string]any) bool {
	return func(body, want map[string]any) bool {
		if body[field] != nil {
			want[wanted] = body[field]
		}
		return body[field] != nil
	}
}

// mended makes kubeconfigs of those of a case that we take as it says, and
// returns our errors before that.
func mended(t *testing.T, texts []string, want map[string]any) (mended, fails []string) {
	t.Helper()
	for _, text := range texts {
		var file map[string]any
		if err := yaml.Unmarshal([]byte(text), &file); err != nil {
			t.Fatal(err)
		}
		for part, differences := range kubeconfigDifferences {
			entries, _ := file[part+"s"].([]any)
			for _, entry := range entries {
				named := entry.(map[string]any)
				body, _ := named[part].(map[string]any)
				if body == nil {
					body = map[string]any{}
					named[part] = body
				}
				for _, d := range differences {
					if d.mend(body, want) && d.fails != "" {
						fails = append(fails, d.fails)
					}
				}
			}
		}
		raw, err := yaml.Marshal(file)
		if err != nil {
			t.Fatal(err)
		}
		mended = append(mended, string(raw))
	}
	return mended, fails
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
	files, fails := mended(t, c.Files, c.Result)
	for _, part := range fails {
		if _, err := loadKubeconfigs(t, c.Files); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got the error %v, want %q", err, part)
		}
	}
	var beside []string
	for _, field := range []string{"ca_path", "certificate_path", "private_key_path"} {
		if path, ok := c.Result[field].(string); ok {
			beside = append(beside, path)
		}
	}
	got, err := loadKubeconfigs(t, files, beside...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c.Result, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// loadKubeconfigs logs in as operators without login handlers do, and maps
// what that brings onto the fields of the cases. It puts other files beside the
// kubeconfigs.
func loadKubeconfigs(t *testing.T, texts []string, beside ...string) (map[string]any, error) {
	t.Helper()
	folder := t.TempDir()
	var paths []string
	for i, text := range texts {
		path := filepath.Join(folder, fmt.Sprintf("config%d", i))
		paths = append(paths, path)
		writeFile(t, path, text)
	}
	for _, name := range beside {
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
	put("token_file", cfg.BearerTokenFile)
	put("server_name", cfg.ServerName)
	put("impersonate", cfg.Impersonate.UserName)
	if cfg.ExecProvider != nil {
		put("exec", cfg.ExecProvider.Command)
	}
	if cfg.AuthProvider != nil && cfg.BearerToken == "" {
		put("token", cfg.AuthProvider.Config["access-token"])
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
