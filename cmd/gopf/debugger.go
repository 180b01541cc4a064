package main

import (
	"os"
	"os/exec"
	"path/filepath"
)

// debuggerAddress is the port that editors connect to by default.
const debuggerAddress = "127.0.0.1:2345"

const noDebugger = "there is no dlv in PATH; install it by: go install github.com/go-delve/delve/cmd/dlv@latest"

// debuggerPath returns the path of delve, or an empty string.
func debuggerPath() string {
	if path, err := exec.LookPath("dlv"); err == nil {
		return path
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	path := filepath.Join(home, "go", "bin", "dlv")
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// debuggerCommand returns the command that runs the operator under delve. The operator starts
// at once; editors may connect and disconnect at any time.
func debuggerCommand(operator string, args []string) (string, []string) {
	return debuggerPath(), append([]string{"exec", "--headless", "--listen=" + debuggerAddress, "--api-version=2",
		"--accept-multiclient", "--continue", operator, "--"}, args...)
}
