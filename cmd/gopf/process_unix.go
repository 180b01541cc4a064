//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"
)

// isolate puts the process into a new process group. Ctrl-C then reaches it only through
// gopf: once, and before the control plane stops.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
}

// signalGroup sends a signal to the process and its children.
func signalGroup(cmd *exec.Cmd, s os.Signal) error {
	return syscall.Kill(-cmd.Process.Pid, s.(syscall.Signal))
}
