//go:build unix

package controlplane

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

const executableSuffix = ""

// errLocked means that another process, or another open file of this process, has the lock.
var errLocked = errors.New("locked")

// tryLock takes the lock file at path. The lock ends with the process at the latest.
func tryLock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close() // nothing was written
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errLocked
		}
		return nil, err
	}
	return func() { _ = file.Close() }, nil
}

// detach puts the process into a new process group, so it gets no signals of the terminal.
// Ctrl-C is for this process, which stops everything in order.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// private checks that dir belongs to the user, and that no other user can write to it.
func private(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(owner.Uid) != os.Getuid() || info.Mode().Perm()&0o022 != 0 {
		return errors.New("other users can write to it, or it is not a folder of this user")
	}
	return nil
}
