//go:build unix

package main

import (
	"os"
	"os/exec"
)

// keyByKey returns functions that make a terminal deliver keys without Enter and without
// echo, and that restore it. Ctrl-C still sends a signal.
func keyByKey(terminal *os.File) (raw, restore func()) {
	stty := func(args ...string) func() {
		return func() {
			cmd := exec.Command("stty", args...)
			cmd.Stdin = terminal
			_ = cmd.Run() // without it, keys need Enter
		}
	}
	return stty("-icanon", "-echo", "min", "1"), stty("icanon", "echo")
}
