//go:build unix

package call

import (
	"os/exec"
	"syscall"
)

// isolate puts the program into a new process group. Its children can then be killed with
// it.
func isolate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// signalGroup sends a signal to the program and its children. It ignores processes that have
// exited.
func signalGroup(cmd *exec.Cmd, s syscall.Signal) { _ = syscall.Kill(-cmd.Process.Pid, s) }
