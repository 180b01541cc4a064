package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// unusedLimit is the time after which an unused executable is removed. Executables are
// large, and each change of their sources creates a new one.
const unusedLimit = 30 * 24 * time.Hour

// cacheFolder returns the folder for executables: in the user's cache folder or, without
// one (HOME is not set), in a private folder in the temporary directory.
func cacheFolder() (string, error) {
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "gopf", "devcluster"), nil
	}
	dir := filepath.Join(os.TempDir(), "gopf-cache-"+strconv.Itoa(os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("create the cache folder: %w", err)
	}
	// All users can write to the parent folder. Do not run executables of other users.
	if err := private(dir); err != nil {
		return "", fmt.Errorf("use the cache folder %s: %w; delete it, or set HOME or XDG_CACHE_HOME", dir, err)
	}
	return filepath.Join(dir, "devcluster"), nil
}

// prune removes executables that were last used before the given time, except those that
// are being built. It ignores errors, because the next run tries again.
func prune(cache string, before time.Time) {
	entries, err := os.ReadDir(cache)
	if err != nil {
		return
	}
	for _, entry := range entries {
		dir := filepath.Join(cache, entry.Name())
		info, err := os.Stat(filepath.Join(dir, "devcluster"+executableSuffix))
		if err != nil || !info.ModTime().Before(before) {
			continue
		}
		unlock, err := tryLock(filepath.Join(dir, "lock"))
		if err != nil {
			continue
		}
		_ = os.RemoveAll(dir)
		unlock()
	}
}
