package life_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf"
)

// The variables of operators in processes.
const (
	operatorVariable  = "GOPF_LIFE_OPERATOR"  // which one this executable is
	identityVariable  = "GOPF_LIFE_IDENTITY"  // who it is
	namespaceVariable = "GOPF_LIFE_NAMESPACE" // where its lease is
	durationVariable  = "GOPF_LIFE_DURATION"  // of the lease
	callsVariable     = "GOPF_LIFE_CALLS"     // a file for the calls of its handlers
)

// processes are the operators that this executable can be.
func processes() map[string]func() *gopf.Operator {
	return map[string]func() *gopf.Operator{
		"replica":        replicaProcess,
		"broken startup": func() *gopf.Operator { return lifeProcess(gopf.Permanent(errors.New("no disk")), nil) },
		"broken cleanup": func() *gopf.Operator { return lifeProcess(nil, gopf.Permanent(errors.New("no broom"))) },
		"long cleanup":   func() *gopf.Operator { return lifeProcess(nil, gopf.RetryAfter(time.Hour, errors.New("not yet"))) },
	}
}

// replicaProcess is one of several equal operators, whose handlers note what they
// have handled and when they began.
func replicaProcess() *gopf.Operator {
	duration, err := time.ParseDuration(os.Getenv(durationVariable))
	if err != nil {
		panic(err)
	}
	op := newOperator()
	op.Settings.Election = gopf.ElectionSettings{
		Enabled: true, Name: "replicas", Namespace: os.Getenv(namespaceVariable), Identity: os.Getenv(identityVariable),
		Duration: duration, RenewDeadline: duration * 2 / 3, RetryPeriod: duration / 8,
	}
	x := gopf.For[*Example](op, examples)
	note := func(_ context.Context, c *gopf.Change[*Example]) error {
		began := time.Now()
		time.Sleep(20 * time.Millisecond)
		return noteCall("%s %s %s %d", os.Getenv(identityVariable), c.Object.Name, c.Object.Spec.Field, began.UnixMicro())
	}
	x.OnCreate("create", note)
	x.OnUpdate("update", note)
	return op
}

// lifeProcess is an operator that notes the steps of its life.
func lifeProcess(startup, cleanup error) *gopf.Operator {
	op := newOperator()
	op.OnStartup("startup", func(context.Context, *gopf.Activity) error {
		if err := noteCall("startup"); err != nil {
			return err
		}
		return startup
	})
	op.OnCleanup("cleanup", func(_ context.Context, a *gopf.Activity) error {
		if err := noteCall("cleanup, API: %v", a.API != nil); err != nil {
			return err
		}
		return cleanup
	})
	(&diary{}).handles(op, "")
	return op
}

func noteCall(format string, args ...any) error {
	file, err := os.OpenFile(os.Getenv(callsVariable), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return gopf.Permanent(err)
	}
	defer file.Close()
	_, err = fmt.Fprintf(file, format+"\n", args...)
	return err
}

// process is an operator in a process of its own.
type process struct {
	t     *testing.T
	log   *logbook
	cmd   *exec.Cmd
	ended chan struct{}
}

// calls is a file for those of operators in processes.
type calls struct{ path string }

func newCalls(t *testing.T) calls { return calls{filepath.Join(t.TempDir(), "calls")} }

func (c calls) all() []string {
	text, err := os.ReadFile(c.path)
	if err != nil {
		return nil // nobody was called yet
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// launch starts an operator in the namespace.
func (s *space) launch(name string, to calls, variables ...string) *process {
	s.t.Helper()
	p := &process{t: s.t, log: &logbook{}, cmd: exec.Command(os.Args[0], "run", "--namespace", s.name, "--verbose"), ended: make(chan struct{})}
	// The race detector would make every end last a second.
	p.cmd.Env = append(append(os.Environ(), "KUBECONFIG="+kubeconfig, "GORACE=atexit_sleep_ms=0",
		operatorVariable+"="+name, namespaceVariable+"="+s.name, callsVariable+"="+to.path), variables...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // its outcome is in the exit code
	}()
	s.t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it fails only if the process is gone
		<-p.ended
		if s.t.Failed() {
			s.t.Logf("the output of %s %q:\n%s", name, variables, p.log)
		}
	})
	return p
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// wait returns the exit code, -1 if a signal killed it.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatal("the process does not end")
	}
	return p.cmd.ProcessState.ExitCode()
}
