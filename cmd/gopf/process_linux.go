package main

import "syscall"

// dieWithParent has the kernel end the process when gopf is killed. Elsewhere than
// on Linux it notices only that the control plane is gone.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
