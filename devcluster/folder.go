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

// runPrefix begins the names of folders for sockets and temporary data.
const runPrefix = "gopf-devcluster-"

// staleAge is how long an unlocked folder of ours is taken for one that is just
// being made by another devcluster.
const staleAge = 10 * time.Second

// folder is where a control plane keeps its things. Only one devcluster at a time
// has it: a lock says so, and goes away with the process however that ends.
type folder struct {
	data      string // objects, keys, port, kubeconfig
	run       string // sockets; gone after the run
	temporary bool   // data is run
	locks     []*os.File
}

// openFolder makes and locks the data folder; an empty name stands for a temporary one.
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

// runParent is the folder for temporary files, unless the paths of sockets, which
// systems limit to about a hundred bytes, would get too long there.
func runParent() string {
	const limit = 60
	if dir := os.TempDir(); len(dir) <= limit {
		return dir
	}
	return "/tmp"
}

// path is the place of a file in the data folder.
func (f *folder) path(name string) string { return filepath.Join(f.data, name) }

// remove deletes what must not outlive the run; with a data folder, only the sockets.
func (f *folder) remove() {
	os.RemoveAll(f.run)
}

// keepLog saves the log of a failed run from being removed and returns its place,
// or "" if nothing was logged.
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

// tryLock takes the lock that lasts until the file is closed or the process ends.
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

// removeStale deletes temporary folders of devclusters that were killed. What
// cannot be judged or deleted is left alone: it may be another user's.
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

// writeFile replaces a private file at once, so that a crash leaves the old or the new.
func writeFile(path string, content []byte) error {
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// exists tells whether all files are there.
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
