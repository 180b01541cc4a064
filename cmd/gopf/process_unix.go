//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// isolate gives the process a group of its own, so that Ctrl-C reaches it only
// through gopf: once, and before the control plane stops.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
}

// signalGroup sends SIGINT, or SIGKILL, to the process and those it started.
func signalGroup(cmd *exec.Cmd, kill bool) error {
	signal := syscall.SIGINT
	if kill {
		signal = syscall.SIGKILL
	}
	return syscall.Kill(-cmd.Process.Pid, signal)
}
