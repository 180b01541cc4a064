package controlplane

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gopf.dev/gopf/internal/dev/nested"
)

// memoryPause is the time between two lines about the build of the in-memory server, which
// takes about a minute on a new machine.
const memoryPause = 10 * time.Second

// memoryTags leave CEL and all that needs it out of the in-memory server: it takes longer to
// compile than the rest.
const memoryTags = "gopf_lean"

// buildMemory returns the path of the in-memory server's executable. In a checkout, the go
// command decides whether it must be built again, because the server consists of packages of
// several modules.
func buildMemory(ctx context.Context, progress io.Writer) (string, error) {
	if progress == nil {
		progress = io.Discard
	}
	dir, pkg, err := nested.Source(ctx, "gopf-memory")
	if err != nil {
		return "", fmt.Errorf("build the in-memory API server: %w", err)
	}
	tools, err := findToolchain(ctx, dir)
	if err != nil {
		return "", err
	}
	cache, err := cacheFolder()
	if err != nil {
		return "", err
	}
	hash := sha256.Sum256(fmt.Appendf(nil, "%s %s", dir, tools.Version))
	folder := filepath.Join(filepath.Dir(cache), "memory", hex.EncodeToString(hash[:])[:16])
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("create the cache folder: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(folder, "lock"), func() {
		fmt.Fprintln(progress, "Another process is building the in-memory API server; waiting for it.")
	})
	if err != nil {
		return "", err
	}
	defer unlock()
	path := filepath.Join(folder, "gopf-memory"+executableSuffix)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		fmt.Fprintln(progress, "Building the in-memory API server. This happens once and takes about a minute on 2 cores.")
	}
	// With cgo as in other builds of the user, the go command finds most packages in its cache.
	cgo, err := goTool(ctx, dir, []string{"CGO_ENABLED=" + os.Getenv("CGO_ENABLED")}, "env", "CGO_ENABLED")
	if err != nil {
		return "", err
	}
	// The go command replaces an executable that runs, and leaves a current one as it is.
	cmd := goCommand(ctx, dir, []string{"GOOS=" + tools.OS, "GOARCH=" + tools.Arch, "CGO_ENABLED=" + strings.TrimSpace(string(cgo))},
		"build", "-v", "-buildvcs=false", "-tags", memoryTags, "-ldflags", "-s -w", "-o", path, pkg)
	if err := follow(ctx, cmd, "the in-memory API server", memoryPause, progress); err != nil {
		return "", fmt.Errorf("build the in-memory API server: %w", err)
	}
	return path, nil
}
