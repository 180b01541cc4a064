package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestBadInputGetsOneClearLine(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	broken := filepath.Join(empty, "broken")
	if err := os.WriteFile(broken, []byte("clusters: {"), 0o600); err != nil {
		t.Fatal(err)
	}
	unreachable := kubeconfigFor(t, "https://127.0.0.1:1")
	everywhere := []string{"run", "--all-namespaces"}
	cases := map[string]struct {
		args       []string
		kubeconfig string
		code       int
		want       []string
	}{
		"nothing to do":   {nil, "", 2, []string{"the command is missing", "run --all-namespaces", "--help"}},
		"unknown command": {[]string{"runn"}, "", 2, []string{`unknown command or argument "runn"`, "--help"}},
		"unknown flag":    {[]string{"run", "--verbos"}, "", 2, []string{"unknown flag: --verbos", "run --help"}},
		"an argument":     {[]string{"run", "-A", "operator.py"}, "", 2, []string{`unknown command or argument "operator.py"`}},
		"everywhere and somewhere": {[]string{"run", "-A", "-n", "ns"}, "", 2,
			[]string{"--all-namespaces and --namespace exclude each other; use only one of them"}},
		"no namespace":         {[]string{"run", "-n", ""}, "", 2, []string{"--namespace needs a name or a pattern"}},
		"unknown log format":   {append(everywhere, "--log-format", "xml"), "", 2, []string{`--log-format is "xml"; use plain, full or json`}},
		"no kubeconfig":        {everywhere, "", 1, []string{"no kubeconfig and not in a cluster", "set KUBECONFIG", "--kubeconfig", "gopf dev"}},
		"missing kubeconfig":   {everywhere, empty + "/none", 1, []string{"the kubeconfig " + empty + "/none does not exist", "check KUBECONFIG or --kubeconfig"}},
		"malformed kubeconfig": {everywhere, broken, 1, []string{"the kubeconfig " + broken + " cannot be read", "correct it, or choose another file"}},
		"unknown context":      {append(everywhere, "--context", "none"), kubeconfig, 1, []string{`has no such context: "none"`}},
		"unreachable server":   {everywhere, unreachable, 1, []string{"https://127.0.0.1:1 cannot be reached", "connection refused", "check that the cluster is running and that the kubeconfig is for this cluster"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startOperator(t, "greeting", []string{"HOME=" + empty, "KUBERNETES_SERVICE_HOST=", "KUBECONFIG=" + c.kubeconfig}, c.args...)
			if code := p.Wait(); code != c.code {
				t.Errorf("got exit code %d, want %d", code, c.code)
			}
			lines := slices.DeleteFunc(p.Log.With(), func(line string) bool { return strings.Contains(line, "[INFO    ]") })
			if len(lines) != 1 {
				t.Fatalf("got %q, want one line", lines)
			}
			for _, want := range append(c.want, "Error: ") {
				if !strings.Contains(lines[0], want) {
					t.Errorf("got %q, want %q", lines[0], want)
				}
			}
		})
	}
}

func TestHelpAndVersionAreUseful(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		args []string
		want []string
	}{
		"help":        {[]string{"--help"}, []string{"run ", "version ", "Examples:", "run --all-namespaces"}},
		"help of run": {[]string{"run", "--help"}, []string{"-A, --all-namespaces", "-n, --namespace", "-v, --verbose", "--standalone", "--kubeconfig", "Examples:", "Ctrl-C"}},
		"version":     {[]string{"version"}, []string{"gopf.dev/gopf ", "go1."}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := startOperator(t, "greeting", nil, c.args...)
			if code := p.Wait(); code != 0 {
				t.Errorf("got exit code %d", code)
			}
			for _, want := range c.want {
				if !strings.Contains(p.Log.String(), want) {
					t.Errorf("got %q, want %q", p.Log, want)
				}
			}
		})
	}
}
