package kube

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const kubeconfig = `
apiVersion: v1
kind: Config
current-context: one
clusters:
- {name: c1, cluster: {server: "https://one"}}
- {name: c2, cluster: {server: "https://two"}}
users:
- {name: u, user: {token: secret}}
contexts:
- {name: one, context: {cluster: c1, user: u, namespace: ns1}}
- {name: two, context: {cluster: c2, user: u}}
- {name: loose, context: {cluster: c9, user: u}}
- {name: nobody, context: {cluster: c1, user: u9}}
`

func TestLoadConfig(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("good", kubeconfig)
	write("home/.kube/config", strings.ReplaceAll(kubeconfig, "https://one", "https://home"))
	broken := write("broken", "clusters: [")
	aimless := write("aimless", strings.ReplaceAll(kubeconfig, "current-context: one", ""))
	other := write("other", strings.ReplaceAll(kubeconfig, "current-context: one", "current-context: two"))
	missing := filepath.Join(dir, "missing")
	list := string(filepath.ListSeparator)

	cases := map[string]struct {
		path, context, env, home string
		host, namespace          string
		problem                  ConfigProblem
		err                      string
	}{
		"a path":                        {path: good, env: other, host: "https://one", namespace: "ns1"},
		"a path and a context":          {path: good, context: "two", host: "https://two"},
		"KUBECONFIG":                    {env: good, host: "https://one", namespace: "ns1"},
		"several paths in KUBECONFIG":   {env: missing + list + aimless + list + other, host: "https://two"},
		"KUBECONFIG with a tilde":       {env: " ~/.kube/config ", home: filepath.Join(dir, "home"), host: "https://home", namespace: "ns1"},
		"blank KUBECONFIG":              {env: " " + list, home: filepath.Join(dir, "home"), host: "https://home", namespace: "ns1"},
		"home directory":                {home: filepath.Join(dir, "home"), host: "https://home", namespace: "ns1"},
		"nothing":                       {home: dir, err: "no kubeconfig and not in a cluster: set KUBECONFIG, pass --kubeconfig, or run `gopf dev`"},
		"a missing file":                {path: missing, problem: ConfigMissing, err: "the kubeconfig " + missing + " does not exist: check KUBECONFIG or --kubeconfig"},
		"a missing file in KUBECONFIG":  {env: missing, problem: ConfigMissing},
		"a broken file":                 {path: broken, problem: ConfigBroken},
		"a broken file among others":    {env: good + list + broken, problem: ConfigBroken},
		"a directory":                   {path: dir, problem: ConfigBroken},
		"no current context":            {path: aimless, problem: ConfigNoContext, err: "the kubeconfig " + aimless + " has no current context: choose one with `kubectl config use-context` or --context"},
		"no such context":               {path: good, context: "three", problem: ConfigDangling, err: "the kubeconfig " + good + ` has no such context: "three"`},
		"a context without its cluster": {path: good, context: "loose", problem: ConfigNoCluster},
		"a context without its user":    {path: good, context: "nobody", problem: ConfigNoUser},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", c.env)
			t.Setenv("HOME", c.home)
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			cfg, namespace, err := LoadConfig(c.path, c.context)
			if c.host != "" {
				if err != nil {
					t.Fatal(err)
				}
				if cfg.Host != c.host || namespace != c.namespace || cfg.BearerToken != "secret" {
					t.Errorf("got %s in %q", cfg.Host, namespace)
				}
				return
			}
			if err == nil || strings.Contains(err.Error(), "\n") || c.err != "" && err.Error() != c.err {
				t.Errorf("got %v, want %s", err, c.err)
			}
			var wrong *ConfigError
			if c.problem != "" && (!errors.As(err, &wrong) || wrong.Problem != c.problem) {
				t.Errorf("got %v, want %q", err, c.problem)
			}
			if c.problem == "" && !errors.Is(err, ErrNoConfig) {
				t.Errorf("got %v, want ErrNoConfig", err)
			}
		})
	}
}

func TestResponsesFromTheSameComputerAreNotCompressed(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for server, plain := range map[string]bool{
		"https://127.0.0.1:6443":         true,
		"https://[::1]:6443":             true,
		"https://localhost:6443":         true,
		"https://10.0.0.1:6443":          false,
		"https://kubernetes.example.com": false,
		"https://127.0.0.1.example.com":  false,
	} {
		path := filepath.Join(t.TempDir(), "config")
		text := strings.ReplaceAll(kubeconfig, `"https://one"`, "'"+server+"'")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, _, err := LoadConfig(path, "")
		if err != nil {
			t.Fatal(err)
		}
		if cfg.DisableCompression != plain {
			t.Errorf("%s: compression is off: %v, want %v", server, cfg.DisableCompression, plain)
		}
	}
}

func TestAKubeconfigMayDisableCompression(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	text := strings.ReplaceAll(kubeconfig, `server: "https://one"`, `server: "https://one", disable-compression: true`)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := LoadConfig(path, "")
	if err != nil {
		t.Fatal(err)
	}
	if !cfg.DisableCompression {
		t.Error("the responses are compressed")
	}
}
