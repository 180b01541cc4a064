package call

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// watchExit prepares a command. After its start, wait waits for its exit, and occupies no
// thread. [exec.Cmd.Wait] occupies one, and threads count for the process limit of a pod. wait
// returns at once if the kernel does not support it.
func watchExit(cmd *exec.Cmd) (wait func()) {
	fd := -1
	cmd.SysProcAttr.PidFD = &fd
	return func() {
		if fd < 0 {
			return
		}
		if syscall.SetNonblock(fd, true) != nil {
			_ = syscall.Close(fd)
			return
		}
		file := os.NewFile(uintptr(fd), "pidfd")
		defer closeAll(file)
		conn, err := file.SyscallConn()
		if err != nil {
			return
		}
		_ = conn.Read(func(uintptr) bool {
			// An exit before the first call wakes nothing: look for it each time.
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0) //nolint:gosec // file descriptors are small
			return n > 0 || err != nil && !errors.Is(err, syscall.EINTR)
		})
	}
}
