package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"

	"gopf.dev/gopf/internal/controlplane"
)

// grace is how long a process may take to end after it was asked to.
const grace = 10 * time.Second

// process is a command to run on a cluster. Its output is this process's, its input empty.
type process struct {
	path string
	args []string
	env  []string // besides this process's own
	name string   // for people

	// transparent makes it look as if the process were this one: it gets the signals
	// that this one gets, takes its time to stop, and its exit code counts.
	transparent bool
}

// supervise runs the process until it ends, the user wants to stop, or the control
// plane (which may be nil) dies. The error carries the exit code.
func (i *interrupt) supervise(cluster *controlplane.ControlPlane, p process, stderr io.Writer) error {
	cmd := exec.Command(p.path, p.args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), p.env...)
	isolate(cmd)
	ended := make(chan error, 1)
	begun := make(chan error, 1)
	go func() {
		// The kernel ties the process to this thread: it is killed when the thread ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			begun <- err
			return
		}
		begun <- nil
		ended <- cmd.Wait()
	}()
	if err := <-begun; err != nil {
		return fmt.Errorf("run %s: %w", p.name, err)
	}

	var died <-chan struct{}
	if cluster != nil {
		died = cluster.Done()
	}
	select {
	case err := <-ended:
		return exited(p, err)
	case <-died:
		reason := fmt.Errorf("the control plane ended: %w", cluster.Err())
		fmt.Fprintf(stderr, "gopf: the control plane ended; stopping %s\n", p.name)
		_ = i.end(cmd, ended, p) // what counts is why
		return exitError{exitFailure, reason}
	case <-i.first:
		if !p.transparent {
			fmt.Fprintf(stderr, "\nStopping %s; Ctrl-C again ends everything at once.\n", p.name)
		}
		return i.end(cmd, ended, p)
	}
}

// end asks the process to stop, and kills it if it takes too long or the user does
// not want to wait.
func (i *interrupt) end(cmd *exec.Cmd, ended <-chan error, p process) error {
	asked := os.Interrupt
	var late <-chan time.Time
	if p.transparent {
		asked = i.received()
	} else {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		late = timer.C
	}
	if err := signalGroup(cmd, asked); err != nil {
		_ = signalGroup(cmd, os.Kill) // where it cannot be asked
	}
	select {
	case err := <-ended:
		if p.transparent {
			return exited(p, err)
		}
		return nil
	case <-i.second:
		_ = signalGroup(cmd, os.Kill) // it fails only if it is gone
		<-ended
		return exitError{code: exitInterrupted}
	case <-late:
		_ = signalGroup(cmd, os.Kill)
		<-ended
		return exitError{exitFailure, fmt.Errorf("%s did not stop within %v and was killed", p.name, grace)}
	}
}

// exited makes gopf's outcome from that of a process that ended by itself.
func exited(p process, err error) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit) && exit.ExitCode() >= 0 && p.transparent:
		return exitError{code: exit.ExitCode()} // it has said why
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return exitError{exit.ExitCode(), fmt.Errorf("%s ended with %w", p.name, err)}
	}
	return exitError{exitFailure, fmt.Errorf("%s ended: %w", p.name, err)}
}
