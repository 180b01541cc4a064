//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"gopf.dev/gopf/internal/dev/manifests"
)

func TestAMainPackageIsRun(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{"interrupt": syscall.SIGINT, "terminated": syscall.SIGTERM} {
		g := start(t, "run", operator, "-n", "ns", "--verbose")
		if diff := cmp.Diff([]string{"run", "-n", "ns", "--verbose"}, g.operator().Args); diff != "" {
			t.Errorf("arguments: -want +got\n%s", diff)
		}
		g.signal(signal)
		if ended := g.operator(); ended.Signals != 1 || ended.Said != name {
			t.Errorf("the operator got %d signals, %s; want one, %s", ended.Signals, ended.Said, name)
		}
		if code := g.wait(); code != 0 {
			t.Errorf("got exit code %d: %s", code, g.stderr.String())
		}
		if g.stderr.Len() > 0 {
			t.Errorf("got %q", g.stderr.String())
		}
		g.leavesNothing()
	}
}

func TestRunReturnsTheExitCodeOfTheOperator(t *testing.T) {
	g := start(t, "run", operator+"/main.go", "--", "--exit", "7")
	if code := g.wait(); code != 7 || g.stderr.Len() > 0 {
		t.Errorf("got exit code %d, want 7, and %q", code, g.stderr.String())
	}
	g.leavesNothing()
}

func TestPackagesWithoutMainAreRunAsOneOperator(t *testing.T) {
	fruits := fruitsOf(t)
	t.Setenv("KUBECONFIG", existing)
	g := start(t, "run", "./testdata/greeter", "gopf.dev/gopf/cmd/gopf/testdata/waver", "-n", "default", "--standalone")
	expect := func(want string) {
		t.Helper()
		if got := g.operator().Said; got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	expect("the greeter starts")
	fruits.create(t, "gopf-run")
	expect("hello, gopf-run")
	g.signal(syscall.SIGTERM)
	expect("the waver waves")
	if code := g.wait(); code != 0 {
		t.Errorf("got exit code %d: %s", code, g.stderr.String())
	}
	g.says("Signal SIGTERM is received. Operator is stopping.")
	g.leavesNothing()
	if _, err := os.Stat("../../gopf-run-main"); !os.IsNotExist(err) {
		t.Errorf("the main function was written into the module: %v", err)
	}
}

func TestPackagesOfAnotherModuleAreRun(t *testing.T) {
	module := newModule(t, map[string]string{
		// It may be imported only from within the folder "a".
		"a/internal/handlers/handlers.go": strings.Replace(readFile(t, "testdata/waver/waver.go"), "package waver", "package handlers", 1),
	})
	t.Setenv("KUBECONFIG", existing)
	g := start(t, "run", filepath.Join(module, "a/internal/handlers"), "--all-namespaces", "--standalone", "--bad")
	if code := g.wait(); code != 2 {
		t.Errorf("got exit code %d, want 2", code)
	}
	g.says("Error: unknown flag: --bad. See 'handlers run --help'.")
	g.leavesNothing()
}

func TestAFileOfAMainPackageWithoutMainIsRun(t *testing.T) {
	module := newModule(t, map[string]string{
		"waver.go": strings.Replace(readFile(t, "testdata/waver/waver.go"), "package waver", "package main", 1),
		"other.go": "package main\n\nfunc main() { panic(\"this one is not meant\") }\n",
	})
	none := filepath.Join(module, "none")
	t.Setenv("KUBECONFIG", none)
	g := start(t, "run", filepath.Join(module, "waver.go"), "-A", "-q")
	if waved := g.operator(); waved.Said != "the waver waves" {
		t.Errorf("got %+v", waved)
	}
	if code := g.wait(); code != 1 {
		t.Errorf("got exit code %d, want 1", code)
	}
	g.says("Error: log in: the kubeconfig " + none + " does not exist")
	g.leavesNothing()
}

func TestRunExplainsHowToGetACluster(t *testing.T) {
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} {
		value, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv(name, strings.TrimSpace(string(value)))
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	g := start(t, "run", "testdata/greeter", "testdata/waver", "-A", "-q")
	for range 2 {
		g.operator()
	}
	if code := g.wait(); code != 1 {
		t.Errorf("got exit code %d, want 1", code)
	}
	g.says("no kubeconfig and not in a cluster", "or run `gopf dev`")
}

func TestTheCompilerReportsAWrongRegister(t *testing.T) {
	g := start(t, "run", "testdata/signature")
	if code := g.wait(); code != exitFailure {
		t.Errorf("got exit code %d, want %d", code, exitFailure)
	}
	g.says("testdata/signature/signature.go:5:", "cannot use op", "as string value in argument to", "gopf: build the operator in testdata/signature: go build: exit status 1")
	if n := strings.Count(g.stderr.String(), "\n"); n > 3 {
		t.Errorf("got %d lines: %s", n, g.stderr.String())
	}
	g.leavesNothing()
}

func TestRunNeedsGo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	g := start(t, "run", operator)
	if code := g.wait(); code != exitFailure {
		t.Errorf("got exit code %d, want %d", code, exitFailure)
	}
	g.says("gopf: the go command is not in PATH; install Go to build the operator")
}

func TestASecondSignalStopsRunImmediately(t *testing.T) {
	g := start(t, "run", "testdata/stubborn")
	begun := g.operator()
	g.signal(os.Interrupt)
	if !g.operator().Ignored {
		t.Error("the operator was not interrupted")
	}
	g.signal(os.Interrupt)
	if code := g.wait(); code != exitInterrupted {
		t.Errorf("got exit code %d, want %d: %s", code, exitInterrupted, g.stderr.String())
	}
	eventually(t, "the operator is gone", func() bool { return !alive(begun.PID) })
	g.leavesNothing()
}

// newModule creates a module that uses this one through a replace directive and has never
// needed its command line: those dependencies are neither in go.mod nor in go.sum.
func newModule(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	var requires, sums strings.Builder
	without := func(to *strings.Builder, text string) {
		for line := range strings.Lines(text) {
			if !strings.Contains(line, "github.com/spf13/") && !strings.Contains(line, "inconshreveable/mousetrap") {
				to.WriteString(line)
			}
		}
	}
	_, gomod, _ := strings.Cut(readFile(t, "../../go.mod"), "\n")
	without(&requires, gomod)
	without(&sums, readFile(t, "../../go.sum"))
	files["go.mod"] = "module example.com/handlers\n" + requires.String() +
		"\nrequire gopf.dev/gopf v0.0.0\n\nreplace gopf.dev/gopf => " + root + "\n"
	files["go.sum"] = sums.String()
	dir = t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// The missing dependencies are in the module cache, because this module needs them.
	t.Setenv("GOPROXY", "off")
	t.Setenv("GONOSUMDB", "*")
	t.Setenv("GOFLAGS", "")
	t.Cleanup(func() {
		for name, want := range files {
			if readFile(t, filepath.Join(dir, name)) != want {
				t.Errorf("%s changed", name)
			}
		}
	})
	return dir
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fruits are the custom resources of the handlers.
type fruits struct{ dynamic.ResourceInterface }

// fruitsOf defines fruits in the existing cluster.
func fruitsOf(t *testing.T) fruits {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", existing)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := manifests.Read("testdata/manifests.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// Only the definition, which is the last document: an apple would also be handled.
	if err := manifests.Apply(t.Context(), config, objects[1:], func(manifests.Object) {}); err != nil {
		t.Fatal(err)
	}
	resource := schema.GroupVersionResource{Group: "gopf.test", Version: "v1", Resource: "fruits"}
	return fruits{dynamic.NewForConfigOrDie(config).Resource(resource).Namespace("default")}
}

func (f fruits) create(t *testing.T, name string) {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "gopf.test/v1", "kind": "Fruit", "metadata": map[string]any{"name": name}}}
	if _, err := f.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestDevRunsPackagesWithoutMain(t *testing.T) {
	g := start(t, "dev", "testdata/waver", "--no-reload", "--kubeconfig", existing, "--", "run", "-n", "default", "--standalone", "--bad")
	if code := g.wait(); code != 2 {
		t.Errorf("got exit code %d, want 2", code)
	}
	g.says("Error: unknown flag: --bad. See 'waver run --help'.", "gopf: the operator exited with exit status 2")
	g.leavesNothing()
}
