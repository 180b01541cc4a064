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
		return exited(p.name, err)
	case <-died:
		reason := fmt.Errorf("the control plane ended: %w", cluster.Err())
		fmt.Fprintf(stderr, "gopf: the control plane ended; stopping %s\n", p.name)
		_ = i.end(cmd, ended, p.name) // what counts is why
		return exitError{exitFailure, reason}
	case <-i.first:
		fmt.Fprintf(stderr, "\nStopping %s; Ctrl-C again ends everything at once.\n", p.name)
		return i.end(cmd, ended, p.name)
	}
}

// end asks the process to stop, and kills it if it takes too long or the user does
// not want to wait.
func (i *interrupt) end(cmd *exec.Cmd, ended <-chan error, name string) error {
	late := time.NewTimer(grace)
	defer late.Stop()
	if err := signalGroup(cmd, false); err != nil {
		_ = signalGroup(cmd, true) // where it cannot be asked
	}
	select {
	case <-ended:
		return nil
	case <-i.second:
		_ = signalGroup(cmd, true) // it fails only if it is gone
		<-ended
		return exitError{code: exitInterrupted}
	case <-late.C:
		_ = signalGroup(cmd, true)
		<-ended
		return exitError{exitFailure, fmt.Errorf("%s did not stop within %v and was killed", name, grace)}
	}
}

// exited makes gopf's outcome from that of a process that ended by itself.
func exited(name string, err error) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return exitError{exit.ExitCode(), fmt.Errorf("%s ended with %w", name, err)}
	}
	return exitError{exitFailure, fmt.Errorf("%s ended: %w", name, err)}
}
