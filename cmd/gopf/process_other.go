//go:build !unix

package main

import (
	"os"
	"os/exec"
)

func isolate(*exec.Cmd) {}

// signalGroup sends a signal to the process.
func signalGroup(cmd *exec.Cmd, s os.Signal) error { return cmd.Process.Signal(s) }
