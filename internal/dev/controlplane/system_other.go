//go:build !unix

package controlplane

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"time"
)

const executableSuffix = ".exe"

// errLocked means that another process has the lock.
var errLocked = errors.New("locked")

// staleLock is the age from which a lock file counts as left over from a killed process.
const staleLock = time.Hour

// tryLock takes the lock file at path by creating it.
func tryLock(path string) (unlock func(), err error) {
	if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > staleLock {
		_ = os.Remove(path) // the next step reports an error
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, errLocked
	}
	if err != nil {
		return nil, err
	}
	_ = file.Close() // nothing was written
	return func() { _ = os.Remove(path) }, nil
}

func detach(*exec.Cmd) {}

func private(string) error { return nil }
