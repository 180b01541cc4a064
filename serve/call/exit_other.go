//go:build !linux

package call

import "os/exec"

// watchExit does nothing: [exec.Cmd.Wait] waits, and occupies a thread.
func watchExit(*exec.Cmd) (wait func()) { return func() {} }
