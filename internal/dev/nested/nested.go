// Package nested builds programs of nested modules into the user's cache. The
// command gopf stays light without them.
package nested

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

const rootModule = "gopf.dev/gopf"

// unusedLimit is the time after which an unused executable is removed.
const unusedLimit = 30 * 24 * time.Hour

// place has the folders of a program in this repository.
type place struct {
	module string // folder of its module
	pkg    string // folder of its main package in the module
}

// placeOf returns the place of a program: a separate module in the folder cmd/NAME, unless
// it belongs to a larger module.
func placeOf(name string) place {
	switch name {
	case "gopf-serve":
		return place{"serve", "cmd/gopf-serve"}
	case "gopf-memory":
		return place{"gopftest", "cmd/gopf-memory"}
	}
	return place{"cmd/" + name, "."}
}

// Build returns the path of the executable of a program of this repository. The first call for a version builds it, which may take a minute or two;
// progress receives a line about it. Processes that build it at the same time replace each
// other's result, which is the same.
func Build(ctx context.Context, name string, progress io.Writer) (path string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("build %s: %w", name, err)
		}
	}()
	dir, pkg, err := Source(ctx, name)
	if err != nil {
		return "", err
	}
	key, err := keyOf(ctx, dir)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache folder: %w; set HOME or XDG_CACHE_HOME", err)
	}
	cache = filepath.Join(cache, "gopf", name)
	path = filepath.Join(cache, key, name)
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	if _, err := os.Stat(path); err == nil {
		_ = os.Chtimes(path, time.Time{}, time.Now()) // only prune needs the time
		return path, nil
	}
	fmt.Fprintf(progress, "Building %s. This happens once, takes about a minute and is cached in %s.\n", name, cache)
	if err := compile(ctx, dir, pkg, path); err != nil {
		return "", err
	}
	prune(cache, time.Now().Add(-unusedLimit))
	return path, nil
}

// compile builds the program under another name first: no process may run a part of it.
func compile(ctx context.Context, dir, pkg, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("create the cache folder: %w", err)
	}
	unfinished, err := os.MkdirTemp(filepath.Dir(path), "unfinished-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(unfinished)
	built := filepath.Join(unfinished, filepath.Base(path))
	if _, err := goTool(ctx, dir, "build", "-buildvcs=false", "-o", built, pkg); err != nil {
		return err
	}
	return os.Rename(built, path)
}

// prune removes executables that were last used before the given time. It ignores errors,
// because the next build tries again.
func prune(cache string, before time.Time) {
	folders, err := filepath.Glob(filepath.Join(cache, "*"))
	if err != nil {
		return
	}
	for _, folder := range folders {
		executables, err := filepath.Glob(filepath.Join(folder, "*"))
		if err != nil || len(executables) != 1 {
			continue
		}
		if info, err := os.Stat(executables[0]); err == nil && info.ModTime().Before(before) {
			_ = os.RemoveAll(folder)
		}
	}
}

// Source returns the folder in which the go command builds a program, and the package to
// build. The module of the program is next to the sources of this package, in the checkout
// that contains the working directory, or downloaded in the version of gopf.
func Source(ctx context.Context, name string) (dir, pkg string, err error) {
	pkg = "./" + placeOf(name).pkg
	roots, err := Roots()
	if err != nil {
		return "", "", err
	}
	module := rootModule + "/" + placeOf(name).module
	for _, root := range roots {
		dir := filepath.Join(root, filepath.FromSlash(placeOf(name).module))
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module "+module+"\n") {
			return dir, pkg, nil
		}
	}
	version, err := ownVersion()
	if err != nil {
		return "", "", err
	}
	return published(ctx, name, version)
}

// Roots returns the folders that may be the root of a checkout: the one with the sources of
// this executable, then the working directory and the folders above it. The first one may not
// exist.
func Roots() ([]string, error) {
	var roots []string
	if _, file, _, ok := runtime.Caller(0); ok {
		roots = append(roots, filepath.Join(filepath.Dir(file), "..", "..", ".."))
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the working directory: %w", err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		roots = append(roots, dir)
	}
	return append(roots, dir), nil
}

// download downloads a module, and returns its folder in the module cache.
func download(ctx context.Context, module, version string) (string, error) {
	out, err := goTool(ctx, os.TempDir(), "mod", "download", "-json", module+"@"+version)
	var downloaded struct{ Dir, Error string }
	if broken := json.Unmarshal(out, &downloaded); err == nil {
		err = broken
	}
	if downloaded.Error != "" { // more precise than the exit code
		err = errors.New(downloaded.Error)
	}
	if err != nil {
		return "", fmt.Errorf("download %s@%s: %w", module, version, err)
	}
	return downloaded.Dir, nil
}

// BuiltVersion returns the version of the root module in this executable. ok is false if
// the executable is not from a published version.
func BuiltVersion() (version string, ok bool) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", false
	}
	for _, module := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if module.Path == rootModule && module.Replace == nil && strings.HasPrefix(module.Version, "v") {
			return module.Version, true
		}
	}
	return "", false
}

// ownVersion returns the version of the root module in this executable.
func ownVersion() (string, error) {
	if version, ok := BuiltVersion(); ok {
		return version, nil
	}
	return "", fmt.Errorf("no sources found: run this in a checkout of %s, or install a published version of gopf", rootModule)
}

// keyOf returns a cache key, which is different for executables that may differ.
func keyOf(ctx context.Context, dir string) (string, error) {
	toolchain, err := goTool(ctx, dir, "env", "GOVERSION", "GOHOSTOS", "GOHOSTARCH")
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	hash.Write(toolchain)
	folders, err := foldersOf(dir)
	if err != nil {
		return "", err
	}
	for _, folder := range folders {
		if err := HashSources(hash, folder); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}

// foldersOf returns the folders of the sources of a module. If the module uses the root
// module of the checkout, it returns the folders of the whole checkout.
func foldersOf(dir string) (folders []string, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("read the sources: %w", err)
	}
	if strings.Contains(string(text), "\nreplace "+rootModule+" => ../\n") {
		dir = filepath.Dir(dir)
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); path != dir && (name == "testdata" || strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		folders = append(folders, path)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the sources: %w", err)
	}
	return folders, nil
}

// HashSources writes the sources of the program in dir to the hash, without its tests.
func HashSources(hash io.Writer, dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return err
	}
	for _, path := range files { // in lexical order
		name := filepath.Base(path)
		if strings.HasSuffix(name, "_test.go") || !strings.HasSuffix(name, ".go") && name != "go.mod" && name != "go.sum" {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read the sources: %w", err)
		}
		fmt.Fprintf(hash, "%s %d\n%s", name, len(text), text)
	}
	return nil
}

// goTool runs the go command in dir and returns its output, even on error. It ignores
// flags, workspaces and targets that the environment sets for other builds.
func goTool(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly", "CGO_ENABLED=0", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, errors.New("the go command is not in PATH; install Go")
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return out, fmt.Errorf("go %s: %w: %s", args[0], err, strings.TrimSpace(string(exit.Stderr)))
	}
	return out, err
}
