package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// child is a running operator that the loop of "gopf dev" has started.
type child struct {
	cmd   *exec.Cmd
	build *revision // the build that it runs
	since time.Time // of its start
	crash *crashFilter
	ended chan struct{} // closed when the process has exited
	err   error         // its outcome; read it only after ended is closed
}

// startChild starts a process. It returns when the process runs.
func startChild(v *revision, path string, args, env []string, stdout, stderr io.Writer) (*child, error) {
	c := &child{cmd: exec.Command(path, args...), build: v, since: time.Now(), ended: make(chan struct{})}
	c.crash = &crashFilter{to: stderr}
	c.cmd.Stdout, c.cmd.Stderr = stdout, c.crash
	c.cmd.Env = append(os.Environ(), env...)
	c.cmd.WaitDelay = time.Second // for its own children that keep the output open
	isolate(c.cmd)
	begun := make(chan error, 1)
	go func() {
		// The kernel ties the process to this thread and kills it when the thread ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		begun <- err
		if err != nil {
			return
		}
		c.err = c.cmd.Wait()
		close(c.ended)
	}()
	if err := <-begun; err != nil {
		return nil, fmt.Errorf("run the operator: %w", err)
	}
	return c, nil
}

// stop asks the process to end and waits for it. It kills the process after the grace period,
// or when hurry is closed. It reports whether the process ended by itself.
func (c *child) stop(hurry <-chan struct{}) (graceful bool) {
	if err := signalGroup(c.cmd, os.Interrupt); err != nil {
		_ = signalGroup(c.cmd, os.Kill) // on systems without this signal
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case <-c.ended:
		return true
	case <-hurry:
	case <-late.C:
	}
	_ = signalGroup(c.cmd, os.Kill) // it fails only if the process has exited
	<-c.ended
	return false
}
