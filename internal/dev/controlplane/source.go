package controlplane

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"gopf.dev/gopf/internal/dev/nested"
)

// The module of the control plane is in the same repository as this one.
const (
	rootModule       = "gopf.dev/gopf"
	devclusterModule = rootModule + "/cmd/devcluster"
)

// source is the control plane's module on disk.
type source struct {
	dir     string
	version string // of Kubernetes, like v1.37.1
}

// findSource looks for the sources next to those of this package, then in the checkout that
// contains the working directory. A module that only requires gopf has none, because a
// nested module is not part of the download. Then it downloads them in the version of the
// root module.
func findSource(ctx context.Context) (source, error) {
	roots, err := nested.Roots()
	if err != nil {
		return source{}, err
	}
	for _, root := range roots {
		src, err := readSource(filepath.Join(root, "cmd", "devcluster"))
		if err == nil {
			return src, nil
		}
		if !errors.Is(err, errNoSource) {
			return source{}, err
		}
	}
	return download(ctx, ".")
}

var (
	errNoSource       = errors.New("no sources of the control plane")
	moduleLine        = regexp.MustCompile(`(?m)^module\s+(\S+)`)
	kubernetesVersion = regexp.MustCompile(`(?m)^\s*(?:require\s+)?k8s\.io/kubernetes\s+(v(\d+)\.(\d+)\.\S+)`)
)

// readSource checks that dir contains the module, and reads its Kubernetes version.
func readSource(dir string) (source, error) {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return source{}, errNoSource
	}
	if m := moduleLine.FindSubmatch(text); m == nil || string(m[1]) != devclusterModule {
		return source{}, errNoSource
	}
	m := kubernetesVersion.FindSubmatch(text)
	if m == nil {
		return source{}, fmt.Errorf("%s does not require k8s.io/kubernetes", filepath.Join(dir, "go.mod"))
	}
	return source{dir: dir, version: string(m[1])}, nil
}

// download downloads the module from the module proxy. It is built in the module cache,
// because its replace directives apply only in the main module.
func download(ctx context.Context, wd string) (source, error) {
	version, err := ownVersion(ctx, wd)
	if err != nil {
		return source{}, err
	}
	out, err := goTool(ctx, os.TempDir(), nil, "mod", "download", "-json", devclusterModule+"@"+version)
	var module struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &module); err == nil {
		err = jsonErr
	}
	if module.Error != "" { // more precise than the exit code
		err = errors.New(module.Error)
	}
	if err != nil {
		return source{}, fmt.Errorf("download %s: %w; or set %s to a built control plane", devclusterModule, err, binaryVariable)
	}
	return readSource(module.Dir)
}

// ownVersion returns the version of the root module in this executable, or in the module
// of the working directory, because test executables may not know it.
func ownVersion(ctx context.Context, wd string) (string, error) {
	if version, ok := nested.BuiltVersion(); ok {
		return version, nil
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	out, err := goTool(ctx, wd, nil, "list", "-m", "-f", "{{.Version}}", rootModule)
	if version := strings.TrimSpace(string(out)); err == nil && version != "" {
		return version, nil
	}
	return "", fmt.Errorf("no sources of the control plane found: run this in a checkout of %s or in a module that requires it, "+
		"or set %s to a built control plane", rootModule, binaryVariable)
}

// linkerFlags set the version of Kubernetes, which is otherwise unknown in the executable.
func (s source) linkerFlags() string {
	const variables = "k8s.io/component-base/version."
	part := strings.SplitN(strings.TrimPrefix(s.version, "v"), ".", 3)
	return fmt.Sprintf("-s -w -X %[1]sgitVersion=%[2]s -X %[1]sgitMajor=%[3]s -X %[1]sgitMinor=%[4]s",
		variables, s.version, part[0], part[1])
}

// key returns the cache key: a hash of everything that the executable depends on.
func (s source) key(t toolchain) (string, error) {
	hash := sha256.New()
	fmt.Fprintf(hash, "%s %s %s %s\n", t.Version, t.OS, t.Arch, s.linkerFlags())
	if err := nested.HashSources(hash, s.dir); err != nil {
		return "", err
	}
	return s.version + "-" + hex.EncodeToString(hash.Sum(nil))[:16], nil
}
