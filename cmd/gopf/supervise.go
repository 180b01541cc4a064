package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"

	"gopf.dev/gopf/internal/dev/controlplane"
)

// grace is the time in which a process must stop after the signal.
const grace = 10 * time.Second

// process is a command to run. It shares this process's output; its input is empty.
type process struct {
	path string
	args []string
	env  []string // in addition to this process's environment
	name string   // for messages

	// transparent makes gopf behave like the process: gopf forwards its signals, waits
	// without a time limit, and exits with the exit code of the process.
	transparent bool
}

// supervise runs the process until it exits, the user interrupts, or the control plane
// fails. cluster may be nil. The error contains the exit code.
func (i *interrupt) supervise(cluster *controlplane.ControlPlane, p process, stderr io.Writer) error {
	cmd := exec.Command(p.path, p.args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), p.env...)
	isolate(cmd)
	ended := make(chan error, 1)
	begun := make(chan error, 1)
	go func() {
		// The kernel ties the process to this thread and kills it when the thread ends.
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
		reason := fmt.Errorf("the control plane stopped unexpectedly: %w", cluster.Err())
		fmt.Fprintf(stderr, "gopf: the control plane stopped unexpectedly; stopping %s\n", p.name)
		_ = i.end(cmd, ended, p) // the reason above is more important
		return exitError{exitFailure, reason}
	case <-i.first:
		if !p.transparent {
			fmt.Fprintf(stderr, "\nStopping %s; press Ctrl-C again to stop everything immediately.\n", p.name)
		}
		return i.end(cmd, ended, p)
	}
}

// end signals the process to stop. It kills the process after the grace period, or at the
// second signal of the user.
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
		_ = signalGroup(cmd, os.Kill) // on systems without this signal
	}
	select {
	case err := <-ended:
		if p.transparent {
			return exited(p, err)
		}
		return nil
	case <-i.second:
		_ = signalGroup(cmd, os.Kill) // it fails only if the process has exited
		<-ended
		return exitError{code: exitInterrupted}
	case <-late:
		_ = signalGroup(cmd, os.Kill)
		<-ended
		return exitError{exitFailure, fmt.Errorf("%s did not stop within %v and was killed", p.name, grace)}
	}
}

// exited converts the outcome of a process that exited by itself.
func exited(p process, err error) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit) && exit.ExitCode() >= 0 && p.transparent:
		return exitError{code: exit.ExitCode()} // the process has printed the reason
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return exitError{exit.ExitCode(), fmt.Errorf("%s exited with %w", p.name, err)}
	}
	return exitError{exitFailure, fmt.Errorf("%s failed: %w", p.name, err)}
}
