package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// unusedLimit is how long an executable may lie unused before it is removed: they
// are large, and each change of their sources makes a new one.
const unusedLimit = 30 * 24 * time.Hour

// cacheFolder is where executables are kept: in the user's cache folder, or, where
// there is none (HOME is not set), in one of the user's own among the temporary files.
func cacheFolder() (string, error) {
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "gopf", "devcluster"), nil
	}
	dir := filepath.Join(os.TempDir(), "gopf-cache-"+strconv.Itoa(os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the cache folder: %w", err)
	}
	// Everybody can write to the folder above: do not run what others put there.
	if err := private(dir); err != nil {
		return "", fmt.Errorf("use the cache folder %s: %w; delete it, or set HOME or XDG_CACHE_HOME", dir, err)
	}
	return filepath.Join(dir, "devcluster"), nil
}

// prune removes executables that were last used before the given time, except those
// that are just being built. Failures do not matter: another run tries again.
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
