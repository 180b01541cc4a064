package main

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	framework "gopf.dev/gopf"
	"gopf.dev/gopf/internal/dev/controlplane"
)

// newProject runs "gopf new" in an empty folder and returns the folder of the project.
func newProject(t *testing.T, name string, args ...string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), name)
	var stdout, stderr bytes.Buffer
	if code := run(&interrupt{first: make(chan struct{})}, append([]string{"new", folder}, args...), &stdout, &stderr); code != 0 {
		t.Fatalf("gopf new: exit code %d, %s", code, stderr.String())
	}
	if !strings.Contains(stdout.String(), "make test") {
		t.Errorf("the output does not name the next steps: %q", stdout.String())
	}
	return folder
}

func goIn(t *testing.T, folder string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), controlplane.KubeconfigVariable+"="+existing)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestNewProjectPassesItsTestsAndRuns(t *testing.T) {
	folder := newProject(t, "cert-policy", "--kind", "Policy", "--group", "certs.example.com", "--module", "github.com/me/cert-policy")
	// A key of the state that is sorted before other fields, and long names, which YAML wraps.
	d, err := loadDeployment(t.Context(), folder, true, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	files, err := d.files()
	if err != nil {
		t.Fatal(err)
	}
	if err := (&manifestsRun{}).verify(t.Context(), d, d.folder, files, &out, &out); err != nil {
		t.Errorf("the manifests of a new project are not those of its declarations: %v\n%s", err, out.String())
	}
	goIn(t, folder, "vet", "./...")
	goIn(t, folder, "test", "./...") // the third level runs on the real control plane here
	t.Setenv("GOPF_TEST_AS", filepath.Join(folder, "deploy", "rbac.yaml"))
	goIn(t, folder, "test", "-count=1", "./...") // with exactly the permissions of the manifest
	t.Setenv("GOPF_TEST_AS", "")

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "dev", ".", "--kubeconfig", existing, "--apply", "deploy/crd.yaml", "--apply", "sample.yaml")
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), asGopf+"=1")
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 0, 1<<16)
	buf := make([]byte, 4096)
	for !bytes.Contains(said, []byte("Handler 'greet' succeeded.")) {
		n, err := stderr.Read(buf)
		said = append(said, buf[:n]...)
		if err != nil {
			t.Fatalf("gopf dev exited: %v\n%s", err, said)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = stderr.Read(buf)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("gopf dev: %v", err)
	}
}

func TestNewProjectHasAllFiles(t *testing.T) {
	folder := newProject(t, "demo")
	for _, name := range []string{
		"main.go", "types.go", "operator.go", "operator_test.go", "go.mod", "go.sum", "Makefile", "Dockerfile", "README.md", "sample.yaml",
		".gitignore", ".dockerignore", "deploy/crd.yaml", "deploy/rbac.yaml", "deploy/operator.yaml",
		"AGENTS.md", ".golangci.yml", ".github/workflows/test.yml", ".vscode/launch.json", ".run/operator.run.xml", ".git/HEAD",
	} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			t.Error(err)
		}
	}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == proxyFolder):
			return filepath.SkipDir // not from templates
		case d.IsDir():
			return nil
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte("[[")) || bytes.Contains(raw, []byte("<no value>")) {
			t.Errorf("%s is not filled in:\n%s", path, raw)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	manifest, err := os.ReadFile(filepath.Join(folder, "deploy/operator.yaml"))
	if err != nil || !bytes.Contains(manifest, []byte("--log-format=json")) {
		t.Errorf("the Deployment does not log JSON, which collectors expect: %s %v", manifest, err)
	}
	for _, flag := range []string{"--health=", "--metrics=", "--election=lease"} {
		if !bytes.Contains(manifest, []byte(flag)) {
			t.Errorf("the Deployment does not have the flag %s:\n%s", flag, manifest)
		}
	}
	agents, err := os.ReadFile(filepath.Join(folder, "AGENTS.md"))
	if lines := bytes.Count(agents, []byte("\n")); err != nil || lines > 40 {
		t.Errorf("AGENTS.md has %d lines, want at most 40: %v", lines, err)
	}
	out, err := exec.CommandContext(t.Context(), "gofmt", "-l", folder).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("not formatted: %s %v", out, err)
	}
}

func TestNewProjectsHaveAnIdentity(t *testing.T) {
	for name, c := range map[string]struct {
		name, group, want string
	}{
		"the group":           {"demo", "demo.example.com", "demo.example.com"},
		"a group of Kopf":     {"demo", "kopf.dev", "demo.kopf.dev"},
		"an operator of Kopf": {"kopf", "kopf.example.com", "operator.kopf.example.com"},
	} {
		p := project{Name: c.name, Group: c.group}
		if got := p.Identity(); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
		if err := framework.New(framework.Identity(p.Identity())).Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	code, err := os.ReadFile(filepath.Join(newProject(t, "demo"), "operator.go"))
	if err != nil || !bytes.Contains(code, []byte(`gopf.New(gopf.Identity("demo.example.com", gopf.StateInStatus("demo")))`)) {
		t.Errorf("the operator has no identity: %s %v", code, err)
	}
	if got := (&project{Name: "x", Group: "message.example.com"}).StateKey(); got != "message-operator" {
		t.Errorf("the key of the state is %q, which is the name of a field", got)
	}
}

func TestNamesBecomeKindsAndPlurals(t *testing.T) {
	for name, want := range map[string][2]string{
		"demo": {"Demo", "demos"}, "cert-bot": {"CertBot", "certbots"}, "policy": {"Policy", "policies"}, "box": {"Box", "boxes"}, "array": {"Array", "arrays"},
	} {
		kind := camelCase(name)
		if got := [2]string{kind, plural(strings.ToLower(kind))}; got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

func TestInvalidProjectsAreUsageErrors(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no name":       {nil, "name exactly one operator"},
		"bad name":      {[]string{"My_Operator"}, `"My_Operator" is not a valid name for an operator`},
		"bad kind":      {[]string{dir + "/a", "--kind", "lower"}, `"lower" is not a valid kind`},
		"bad group":     {[]string{dir + "/a", "--group", "plain"}, `"plain" is not a valid API group`},
		"taken":         {[]string{"testdata"}, "the folder testdata already exists"},
		"no checkout":   {[]string{dir + "/a", "--gopf", dir}, "does not contain the sources of gopf"},
		"too many":      {[]string{"a", "b"}, "name exactly one operator"},
		"unknown flags": {[]string{"a", "--what"}, "unknown flag"},
		"no variant":    {[]string{dir + "/a", "--with", "typd"}, `--with: there is no variant "typd"; use typed, minimal, children, admission, yaml`},
		"yaml and more": {[]string{dir + "/a", "--with", "yaml,children"}, "--with: yaml is a variant without others"},
		"no module":     {[]string{dir + "/a", "--with", "yaml", "--module", "example.com/a"}, "--module: the variant yaml has no Go code"},
		"two variants":  {[]string{dir + "/a", "--with", "minimal,children"}, "--with: minimal is a variant without others"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(&interrupt{first: make(chan struct{})}, append([]string{"new"}, c.args...), &stdout, &stderr)
		if code != 2 || !strings.Contains(stderr.String(), c.want) || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%s: exit code %d, %q; want %q", name, code, stderr.String(), c.want)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("files were written: %v", entries)
	}
}

func TestOnlyPublishedVersionsAreRequired(t *testing.T) {
	for _, tt := range []struct{ version, sum, want string }{
		{version: "v0.1.0", sum: "h1:x=", want: "v0.1.0"},
		{version: "v0.1.0", want: "v0.1.0"}, // a release is built in a checkout of its tag
		{version: "v0.1.0-rc.1", want: "v0.1.0-rc.1"},
		{version: "(devel)"},
		{version: "v0.1.0+dirty"},
		{version: "v0.0.0-20261116100921-611f41de4352"},
		{version: "v0.1.0-rc.1.0.20261116100921-611f41de4352"},
		{version: "v0.1.1-0.20261116100921-611f41de4352"},
		{version: "v0.0.0-20261116100921-611f41de4352", sum: "h1:x=", want: "v0.0.0-20261116100921-611f41de4352"},
	} {
		info := &debug.BuildInfo{Main: debug.Module{Version: tt.version, Sum: tt.sum}}
		if got := publishedVersion(info); got != tt.want {
			t.Errorf("%s with the checksum %q: got %q, want %q", tt.version, tt.sum, got, tt.want)
		}
	}
}
