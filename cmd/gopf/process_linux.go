package main

import "syscall"

// dieWithParent makes the kernel kill the process when gopf is killed. On other systems,
// the process only notices that the control plane is gone.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
