package vectors_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/internal/login"
)

// kubeconfigLogin logs in with the kubeconfigs of the case.
func kubeconfigLogin(t *testing.T, v vector) {
	c := decode[struct {
		Title  string
		Files  []string
		Result map[string]any
	}](t, v.JSON)
	delete(c.Result, "priority")
	delete(c.Result, "trust_env")
	maps.DeleteFunc(c.Result, func(_ string, value any) bool { return value == "" || value == false || value == nil })
	if text, fails := c.Result["error"].(string); fails {
		if _, err := loadKubeconfigs(t, c.Files); !isLike(t, text, err) {
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
	for _, field := range []string{"ca_path", "certificate_path", "private_key_path", "token_file"} {
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

// content is that of the files beside a kubeconfig.
const content = "PEM"

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
		writeFile(t, filepath.Join(folder, name), content)
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
	put("token_file", path(cfg.BearerTokenFile))
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
