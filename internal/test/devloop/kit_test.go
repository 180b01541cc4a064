//go:build unix

package devloop

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

const root = "../../.."

// limit is the time that a state may take to appear. It is generous: the machine may be busy.
const limit = 4 * time.Minute

// tool is the path of gopf, which TestMain builds.
var tool string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		folder, err := os.MkdirTemp("", "gopf-devloop-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(folder)
		tool = filepath.Join(folder, "gopf")
		build := exec.Command("go", "build", "-buildvcs=false", "-o", tool, "./cmd/gopf")
		build.Dir, build.Stderr = root, os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "build gopf:", err)
			return 1
		}
		return m.Run()
	}())
}

// output collects what a process prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// servers are the flags of "gopf dev" for its two API servers.
var servers = []string{"--memory", "--real"}

// session is a running "gopf dev" in a project of its own.
type session struct {
	t       *testing.T
	folder  string // of the project
	calls   string // the file that the handlers write to
	cmd     *exec.Cmd
	keys    io.WriteCloser
	said    output
	objects dynamic.NamespaceableResourceInterface
}

// operatorFile has the handlers of the tests. They write a line per call: the number of the
// edit, the object, and the values before and after the change.
const operatorFile = `package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"gopf.dev/gopf"
)

const edit = 0

func newOperator() *gopf.Operator {
	op := gopf.New(gopf.Identity("loop.example.com", gopf.StateInStatus("loop")))
	op.OnStartup("check", startup)
	gopf.For[*Loop](op, resource).On(gopf.Create|gopf.Update, "note", note)
	return op
}

func startup(context.Context, *gopf.Activity) error { return nil }

func note(_ context.Context, c *gopf.Change[*Loop]) error {
	time.Sleep(20 * time.Millisecond) // so that a swap finds running handlers
	f, err := os.OpenFile(CALLS, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintf(f, "%d %s %q %q\n", edit, c.Object.Name, c.Old.Spec.Who, c.Object.Spec.Who)
	return err
}
`

// begin creates a project, and runs it by "gopf dev" with an API server and more arguments.
func begin(t *testing.T, server string, args ...string) *session {
	t.Helper()
	checkout, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	s := &session{t: t, folder: filepath.Join(t.TempDir(), "loop"), calls: filepath.Join(t.TempDir(), "calls")}
	create := exec.CommandContext(t.Context(), tool, "new", s.folder, "--gopf", checkout)
	if out, err := create.CombinedOutput(); err != nil {
		t.Fatalf("gopf new: %v\n%s", err, out)
	}
	if err := os.Remove(filepath.Join(s.folder, "operator_test.go")); err != nil {
		t.Fatal(err)
	}
	s.write("operator.go", strings.Replace(operatorFile, "CALLS", fmt.Sprintf("%q", s.calls), 1))
	args = append([]string{"dev", ".", server, "--keys", "--apply", "deploy/crd.yaml", "--apply", "sample.yaml"}, args...)
	s.cmd = exec.Command(tool, args...)
	s.cmd.Dir = s.folder
	s.cmd.Stdout, s.cmd.Stderr = &s.said, &s.said
	if s.keys, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Kill(); _ = s.cmd.Wait() })
	s.eventually("the sample is handled", func() bool { return strings.Contains(s.handled(), `0 sample`) })
	config, err := clientcmd.BuildConfigFromFlags("", regexp.MustCompile(`KUBECONFIG=(\S+)`).FindStringSubmatch(s.said.String())[1])
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	s.objects = dynamic.NewForConfigOrDie(config).Resource(schema.GroupVersionResource{Group: "loop.example.com", Version: "v1", Resource: "loops"})
	return s
}

// handled returns the lines that handlers have written.
func (s *session) handled() string {
	text, err := os.ReadFile(s.calls)
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	return string(text)
}

func (s *session) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.folder, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// replace saves a file with a text replaced.
func (s *session) replace(name, old, fresh string) {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.folder, name))
	if err != nil {
		s.t.Fatal(err)
	}
	if !strings.Contains(string(text), old) {
		s.t.Fatalf("%s has no %q", name, old)
	}
	s.write(name, strings.Replace(string(text), old, fresh, 1))
}

func (s *session) press(key string) {
	s.t.Helper()
	if _, err := io.WriteString(s.keys, key); err != nil {
		s.t.Fatal(err)
	}
}

func (s *session) eventually(what string, holds func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(limit); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) || s.cmd.Process.Signal(syscall.Signal(0)) != nil {
			s.t.Fatalf("timed out waiting until %s:\n%s", what, s.said.String())
		}
	}
}

// says waits until gopf has printed a line with all of the texts, and returns the line.
func (s *session) says(texts ...string) (found string) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("it says %q", texts), func() bool {
		for line := range strings.Lines(s.said.String()) {
			all := true
			for _, text := range texts {
				all = all && strings.Contains(line, text)
			}
			if all {
				found = line
				return true
			}
		}
		return false
	})
	return found
}

// server returns the process id of the API server, a child of gopf.
func (s *session) server() string {
	s.t.Helper()
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=,args=").Output()
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) > 3 && fields[1] == fmt.Sprint(s.cmd.Process.Pid) && strings.Contains(line, "--supervised") {
			return fields[0]
		}
	}
	s.t.Fatal("the API server does not run")
	return ""
}
