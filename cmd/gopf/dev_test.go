//go:build unix

package main

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

const operator = "testdata/operator"

func TestDevRunsTheOperatorOnAClusterUntilInterrupted(t *testing.T) {
	g := start(t, "dev", operator, "--apply", "testdata/manifests.yaml")
	begun := g.operator()
	if diff := cmp.Diff([]string{"run", "--all-namespaces", "--standalone", "--dev", "--verbose"}, begun.Args); diff != "" {
		t.Errorf("arguments: -want +got\n%s", diff)
	}
	config, err := clientcmd.BuildConfigFromFlags("", begun.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	fruits := dynamic.NewForConfigOrDie(config).Resource(schema.GroupVersionResource{Group: "gopf.test", Version: "v1", Resource: "fruits"})
	if _, err := fruits.Namespace("default").Get(t.Context(), "apple", metav1.GetOptions{}); err != nil {
		t.Errorf("the manifests were not applied: %v", err)
	}
	g.signal(os.Interrupt)
	if ended := g.operator(); ended.Signals != 1 {
		t.Errorf("the operator got %d signals, want one", ended.Signals)
	}
	if code := g.wait(); code != 0 {
		t.Errorf("got exit code %d: %s", code, g.stderr.String())
	}
	g.says("Applied Fruit apple.", "export KUBECONFIG="+begun.Kubeconfig, "kubectl get", "The page of the operator: http://localhost:60")
	g.leavesNothing()
	if alive(begun.PID) {
		t.Error("the operator is still running")
	}
}

func TestDevUsesAnExistingCluster(t *testing.T) {
	g := start(t, "dev", operator, "--kubeconfig", existing, "--", "wait", "--flag", "value")
	begun := g.operator()
	if diff := cmp.Diff([]string{"wait", "--flag", "value"}, begun.Args); diff != "" {
		t.Errorf("arguments: -want +got\n%s", diff)
	}
	if begun.Kubeconfig != existing {
		t.Errorf("got kubeconfig %s, want %s", begun.Kubeconfig, existing)
	}
	g.signal(syscall.SIGTERM)
	if code := g.wait(); code != 0 {
		t.Errorf("got exit code %d: %s", code, g.stderr.String())
	}
	g.leavesNothing()
}

func TestDevReturnsTheExitCodeOfTheOperator(t *testing.T) {
	for _, want := range []int{0, 7} {
		g := start(t, "dev", operator, "--no-reload", "--kubeconfig", existing, "--", "exit", strconv.Itoa(want))
		if code := g.wait(); code != want {
			t.Errorf("got exit code %d, want %d: %s", code, want, g.stderr.String())
		}
		if want != 0 {
			g.says("gopf: the operator exited with exit status 7")
		}
		g.leavesNothing()
	}
}

func TestASecondInterruptStopsImmediately(t *testing.T) {
	g := start(t, "dev", operator, "--", "stubborn")
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
	eventually(t, "the control plane's folder is gone", func() bool { return gone(begun.Kubeconfig) })
	g.leavesNothing()
}

func TestTheEndOfTheControlPlaneIsReported(t *testing.T) {
	g := start(t, "dev", operator)
	begun := g.operator()
	if err := syscall.Kill(controlPlane(t, g.cmd.Process.Pid), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if ended := g.operator(); ended.Signals != 1 {
		t.Errorf("the operator got %d signals, want one", ended.Signals)
	}
	if code := g.wait(); code != exitFailure {
		t.Errorf("got exit code %d, want %d", code, exitFailure)
	}
	g.says("gopf: the control plane stopped unexpectedly: ", "killed", "; see "+strings.TrimSuffix(begun.Kubeconfig, "kubeconfig")+"devcluster.log")
}

func TestNothingSurvivesAKilledGopf(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ties processes to their parents")
	}
	g := start(t, "dev", operator, "--", "stubborn")
	begun := g.operator()
	plane := controlPlane(t, g.cmd.Process.Pid)
	g.signal(os.Kill)
	g.wait()
	eventually(t, "the operator is gone", func() bool { return !alive(begun.PID) })
	eventually(t, "the control plane is gone", func() bool { return !alive(plane) && gone(begun.Kubeconfig) })
}

func TestAnInterruptedStartIsNotASuccess(t *testing.T) {
	g := start(t, "dev", operator)
	eventually(t, "it builds the operator", func() bool {
		entries, _ := os.ReadDir(g.temp)
		return len(entries) > 0
	})
	g.signal(os.Interrupt)
	if code := g.wait(); code != exitInterrupted {
		t.Errorf("got exit code %d, want %d: %s", code, exitInterrupted, g.stderr.String())
	}
	g.leavesNothing()
}

func TestAnOperatorThatDoesNotCompileIsNotRun(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module broken\n\ngo 1.26\n", "main.go": "package main\n\nfunc main() { undefined() }\n"} {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g := start(t, "dev", dir)
	if code := g.wait(); code != exitFailure {
		t.Errorf("got exit code %d, want %d", code, exitFailure)
	}
	g.says("main.go:3:15: undefined: undefined", "gopf: build the operator in "+dir)
	g.leavesNothing()
}

func TestExecSharesAControlPlane(t *testing.T) {
	g := start(t, "exec", "--", "sh", "-c", `test "$KUBECONFIG" = "$GOPF_TEST_KUBECONFIG" && test -s "$KUBECONFIG" && exit 3`)
	if code := g.wait(); code != 3 {
		t.Errorf("got exit code %d, want 3: %s", code, g.stderr.String())
	}
	g.leavesNothing()
}

// controlPlane returns the process id of the control plane that gopf started.
func controlPlane(t *testing.T, parent int) int {
	t.Helper()
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=,args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) > 3 && fields[1] == strconv.Itoa(parent) && strings.Contains(line, "--supervised") {
			pid, err := strconv.Atoi(fields[0])
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatal("no control plane among the processes")
	return 0
}

// alive reports whether the process runs. A zombie does not.
func alive(pid int) bool {
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(out)), "Z")
}

func gone(path string) bool {
	_, err := os.Stat(path)
	return os.IsNotExist(err)
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}
