package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gopf.dev/gopf/internal/test/e2e/kit"
)

// asGopf makes the test executable behave like gopf.
const asGopf = "GOPF_TEST_AS_GOPF"

// existing is the kubeconfig of an existing cluster.
var existing string

func TestMain(m *testing.M) {
	if os.Getenv(asGopf) != "" {
		main()
	}
	os.Exit(kit.Main(m, 0, func(c kit.Cluster) { existing = c.Kubeconfig }))
}

// gopf is a running gopf process.
type gopf struct {
	t      *testing.T
	cmd    *exec.Cmd
	temp   string // for its temporary files
	stdout *bufio.Scanner
	stderr bytes.Buffer // read it only after wait
}

// told is the output of the operators in testdata.
type told struct {
	PID        int
	Args       []string
	Kubeconfig string
	Signals    int
	Ignored    bool
	Said       string
}

// start runs gopf with the arguments.
func start(t *testing.T, args ...string) *gopf {
	t.Helper()
	// Not the test's folder: its path is too long for the names of sockets.
	temp, err := os.MkdirTemp("", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(temp) })
	g := &gopf{t: t, cmd: exec.Command(os.Args[0], args...), temp: temp}
	g.cmd.Env = append(os.Environ(), asGopf+"=1", "TMPDIR="+g.temp)
	g.cmd.Stderr = &g.stderr
	stdout, err := g.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	g.stdout = bufio.NewScanner(stdout)
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.cmd.Process.Kill() })
	return g
}

// operator reads the next line that the operator prints.
func (g *gopf) operator() told {
	g.t.Helper()
	if !g.stdout.Scan() {
		code := g.wait()
		g.t.Fatalf("gopf exited with %d: %s", code, g.stderr.String())
	}
	var line told
	if err := json.Unmarshal(g.stdout.Bytes(), &line); err != nil {
		g.t.Fatalf("%v: %s", err, g.stdout.Bytes())
	}
	return line
}

func (g *gopf) signal(s os.Signal) {
	g.t.Helper()
	if err := g.cmd.Process.Signal(s); err != nil {
		g.t.Fatal(err)
	}
}

// wait returns the exit code, or -1 if a signal killed gopf.
func (g *gopf) wait() int {
	g.t.Helper()
	for g.stdout.Scan() {
		g.t.Logf("unread output: %s", g.stdout.Bytes())
	}
	var exit *exec.ExitError
	if err := g.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		g.t.Fatal(err)
	}
	return g.cmd.ProcessState.ExitCode()
}

// says checks the output on stderr. gopf must have exited.
func (g *gopf) says(wants ...string) {
	g.t.Helper()
	for _, want := range wants {
		if !strings.Contains(g.stderr.String(), want) {
			g.t.Errorf("got %q, want %q", g.stderr.String(), want)
		}
	}
}

func (g *gopf) leavesNothing() {
	g.t.Helper()
	if left, err := filepath.Glob(filepath.Join(g.temp, "gopf-*")); err != nil || len(left) > 0 {
		g.t.Errorf("leftover files: %v %v", left, err)
	}
}
