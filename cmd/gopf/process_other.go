//go:build !unix

package main

import (
	"os"
	"os/exec"
)

func isolate(*exec.Cmd) {}

// signalGroup interrupts or kills the process.
func signalGroup(cmd *exec.Cmd, kill bool) error {
	if kill {
		return cmd.Process.Kill()
	}
	return cmd.Process.Signal(os.Interrupt)
}
