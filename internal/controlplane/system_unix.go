//go:build unix

package controlplane

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

const executableSuffix = ""

// errLocked says that another process, or another file of this one, has the lock.
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

// detach keeps signals of the terminal away from the process: Ctrl-C is for this
// one, which stops things in their order.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// private checks that dir is the user's own and nobody else can write to it.
func private(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(owner.Uid) != os.Getuid() || info.Mode().Perm()&0o022 != 0 {
		return errors.New("it is not a folder that only this user can write to")
	}
	return nil
}
