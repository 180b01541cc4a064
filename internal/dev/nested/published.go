package nested

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// published returns the folder and the package of a program of a published version. A module
// that has no replacements in its go.mod is built where it was downloaded. One that replaces
// other modules by folders of the checkout, which are not part of the download, is built as a
// dependency: there, the go command ignores replacements.
func published(ctx context.Context, name, version string) (dir, pkg string, err error) {
	at := placeOf(name)
	module := rootModule + "/" + at.module
	dir, err = download(ctx, module, version)
	if err != nil {
		return "", "", err
	}
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", "", fmt.Errorf("read the downloaded module: %w", err)
	}
	if !strings.Contains(string(text), "\nreplace "+rootModule+" => ") {
		return dir, "./" + at.pkg, nil
	}
	pkg = module + "/" + at.pkg
	dir, err = wrapper(ctx, name, pkg, version)
	return dir, pkg, err
}

// wrapper returns the folder of a module in the cache that depends on the package. It creates
// the module in another folder first: no process may use a part of it.
func wrapper(ctx context.Context, name, pkg, version string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache folder: %w; set HOME or XDG_CACHE_HOME", err)
	}
	cache = filepath.Join(cache, "gopf", "modules")
	dir := filepath.Join(cache, name+"-"+version)
	if _, err := os.Stat(filepath.Join(dir, "go.sum")); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("create the cache folder: %w", err)
	}
	unfinished, err := os.MkdirTemp(cache, "unfinished-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(unfinished)
	definition := "module gopf.dev/build\n\ngo 1.26.0\n"
	for _, module := range []string{rootModule, rootModule + "/gopftest"} {
		// Commits without a tag require the version of a checkout.
		definition += fmt.Sprintf("\nreplace %s v0.0.0 => %s %s\n", module, module, version)
	}
	if err := os.WriteFile(filepath.Join(unfinished, "go.mod"), []byte(definition), 0o644); err != nil {
		return "", err
	}
	if _, err := goTool(ctx, unfinished, "get", pkg+"@"+version); err != nil {
		return "", fmt.Errorf("resolve the dependencies of %s@%s: %w", pkg, version, err)
	}
	if err := os.Rename(unfinished, dir); err != nil {
		if _, missing := os.Stat(filepath.Join(dir, "go.sum")); missing != nil {
			return "", err
		}
	}
	return dir, nil // another process may have been faster
}
