package kit

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// Process is an operator in a separate process.
type Process struct {
	Log   *Logbook // stdout and stderr
	Ended chan struct{}
	t     *testing.T
	cmd   *exec.Cmd
}

// Launch starts a program, with KUBECONFIG set unless the variables override it. It kills
// the process when the test ends.
func Launch(t *testing.T, kubeconfig string, log *Logbook, variables []string, path string, args ...string) *Process {
	t.Helper()
	p := &Process{Log: log, t: t, cmd: exec.Command(path, args...), Ended: make(chan struct{})}
	// The race detector would delay every exit by a second.
	p.cmd.Env = append(append(os.Environ(), "KUBECONFIG="+kubeconfig, "GORACE=atexit_sleep_ms=0"), variables...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.Ended)
		_ = p.cmd.Wait() // the exit code tells the outcome
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it fails only if the process has exited
		<-p.Ended
	})
	return p
}

// ID returns the number of the process.
func (p *Process) ID() int { return p.cmd.Process.Pid }

// Signal sends the signal to the process.
func (p *Process) Signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// Wait waits until the process exits, and returns its exit code, or -1 if a signal killed
// it.
func (p *Process) Wait() int {
	p.t.Helper()
	select {
	case <-p.Ended:
	case <-time.After(Patience):
		p.t.Fatalf("the process did not exit within %v", Patience)
	}
	return p.cmd.ProcessState.ExitCode()
}
