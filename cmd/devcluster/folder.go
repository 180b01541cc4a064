package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// runPrefix is the prefix of the names of folders for sockets and temporary data.
const runPrefix = "gopf-devcluster-"

// staleAge is the age of an unlocked folder from which it counts as abandoned. Another
// devcluster may just be creating a younger one.
const staleAge = 10 * time.Second

// folder has the files of a control plane. Only one devcluster can use it at a time: it
// holds a lock, which the system releases when the process ends.
type folder struct {
	data      string // objects, keys, port, kubeconfig
	run       string // sockets; removed after the run
	temporary bool   // data is run
	locks     []*os.File
}

// openFolder creates and locks the data folder. An empty name means a temporary one.
func openFolder(data string) (*folder, error) {
	removeStale()
	run, err := os.MkdirTemp(runParent(), runPrefix)
	if err != nil {
		return nil, fmt.Errorf("make a temporary folder: %w", err)
	}
	f := &folder{run: run, data: run, temporary: data == ""}
	if err := f.lock(run); err != nil {
		f.remove()
		return nil, err
	}
	if f.temporary {
		return f, nil
	}
	if f.data, err = filepath.Abs(data); err != nil {
		f.remove()
		return nil, fmt.Errorf("find the data folder: %w", err)
	}
	if err := os.MkdirAll(f.data, 0o700); err != nil {
		f.remove()
		return nil, fmt.Errorf("make the data folder: %w", err)
	}
	if err := f.lock(f.data); err != nil {
		f.remove()
		return nil, err
	}
	return f, nil
}

// runParent returns the folder for temporary files. If the paths of sockets, which are
// limited to about a hundred bytes, would be too long there, it returns another one.
func runParent() string {
	const limit = 60
	if dir := os.TempDir(); len(dir) <= limit {
		return dir
	}
	return "/tmp"
}

// path returns the path of a file in the data folder.
func (f *folder) path(name string) string { return filepath.Join(f.data, name) }

// remove deletes the temporary files of the run. In a data folder, these are the
// sockets.
func (f *folder) remove() {
	os.RemoveAll(f.run)
}

// keepLog moves the log of a failed run to a place where it is not removed, and returns
// its path. "" means that the log is empty.
func (f *folder) keepLog(path string) string {
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		return ""
	}
	if !f.temporary {
		return path
	}
	kept := f.run + ".log"
	if err := os.Rename(path, kept); err != nil {
		return ""
	}
	return kept
}

func (f *folder) lock(dir string) error {
	file, err := tryLock(filepath.Join(dir, "lock"))
	if errors.Is(err, unix.EWOULDBLOCK) {
		return fmt.Errorf("folder %s is in use by another devcluster: stop that one or give another --data", dir)
	}
	if err != nil {
		return fmt.Errorf("lock folder %s: %w", dir, err)
	}
	f.locks = append(f.locks, file)
	return nil
}

// tryLock takes a lock that lasts until the file is closed or the process ends.
func tryLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// removeStale deletes temporary folders of devclusters that were killed. It ignores
// folders that it cannot read or delete: they may belong to another user.
func removeStale() {
	found, _ := filepath.Glob(filepath.Join(runParent(), runPrefix+"*", "lock"))
	for _, path := range found {
		info, err := os.Stat(path)
		if err != nil || time.Since(info.ModTime()) < staleAge {
			continue
		}
		file, err := tryLock(path)
		if err != nil {
			continue
		}
		os.RemoveAll(filepath.Dir(path))
		file.Close()
	}
}

// writeFile replaces a private file atomically: a crash leaves the old or the new one.
func writeFile(path string, content []byte) error {
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// exists reports whether all files exist.
func exists(paths ...string) (bool, error) {
	for _, path := range paths {
		_, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}
