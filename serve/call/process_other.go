//go:build !unix

package call

import (
	"os/exec"
	"syscall"
)

func isolate(*exec.Cmd) {}

// signalGroup kills the program: other systems have neither signals nor groups.
func signalGroup(cmd *exec.Cmd, _ syscall.Signal) { _ = cmd.Process.Kill() }
