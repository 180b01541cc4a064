//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"
)

// isolate gives the process a group of its own, so that Ctrl-C reaches it only
// through gopf: once, and before the control plane stops.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
}

// signalGroup sends a signal to the process and those it started.
func signalGroup(cmd *exec.Cmd, s os.Signal) error {
	return syscall.Kill(-cmd.Process.Pid, s.(syscall.Signal))
}
