package main

import (
	"archive/zip"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

var moduleLine = regexp.MustCompile(`(?m)^module (\S+)$`)

// modulePath returns the path of the module in a folder.
func modulePath(folder string) (string, error) {
	text, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		return "", err
	}
	m := moduleLine.FindSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("%s/go.mod has no module line", folder)
	}
	return string(m[1]), nil
}

// serve writes all modules of the clone into a folder with the layout of a module proxy.
func (r *release) serve(ctx context.Context, proxy string) error {
	tracked, err := git(ctx, r.clone, "ls-files")
	if err != nil {
		return err
	}
	files := strings.Split(tracked, "\n")
	for _, folder := range r.modules {
		module, err := modulePath(filepath.Join(r.clone, filepath.FromSlash(folder)))
		if err != nil {
			return err
		}
		versions := filepath.Join(proxy, filepath.FromSlash(module), "@v")
		if err := os.MkdirAll(versions, 0o755); err != nil {
			return err
		}
		definition, err := os.ReadFile(filepath.Join(r.clone, filepath.FromSlash(folder), "go.mod"))
		if err != nil {
			return err
		}
		info, err := json.Marshal(map[string]any{"Version": r.version, "Time": time.Now().UTC().Truncate(time.Second)})
		if err != nil {
			return err
		}
		for name, text := range map[string][]byte{"list": []byte(r.version + "\n"), r.version + ".info": info, r.version + ".mod": definition} {
			if err := os.WriteFile(filepath.Join(versions, name), text, 0o644); err != nil {
				return err
			}
		}
		if err := pack(r.clone, filepath.Join(versions, r.version+".zip"), module+"@"+r.version, filesOf(files, folder)); err != nil {
			return fmt.Errorf("pack %s: %w", module, err)
		}
	}
	return nil
}

// filesOf returns the tracked files of the module in a folder, relative to the folder and
// without those of nested modules.
func filesOf(tracked []string, folder string) map[string]string {
	var nested []string
	for _, file := range tracked {
		if filepath.Base(file) == "go.mod" {
			nested = append(nested, strings.TrimSuffix(file, "go.mod")) // with a slash; the root is ""
		}
	}
	prefix := ""
	if folder != "." {
		prefix = folder + "/"
	}
	files := map[string]string{}
	for _, file := range tracked {
		if !strings.HasPrefix(file, prefix) {
			continue
		}
		inner := slices.ContainsFunc(nested, func(n string) bool { return len(n) > len(prefix) && strings.HasPrefix(file, n) })
		if !inner {
			files[strings.TrimPrefix(file, prefix)] = file
		}
	}
	return files
}

// pack writes the zip file of a module.
func pack(clone, target, prefix string, files map[string]string) (err error) {
	out, err := os.Create(target)
	if err != nil {
		return err
	}
	defer func() {
		if closed := out.Close(); err == nil {
			err = closed
		}
	}()
	archive := zip.NewWriter(out)
	for name, file := range files {
		path := filepath.Join(clone, filepath.FromSlash(file))
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
			continue // symbolic links are not part of modules
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		w, err := archive.Create(prefix + "/" + name)
		if err != nil {
			return err
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	return archive.Close()
}

// install installs the command as users do, from a proxy that has this version. Then it
// compiles a module that requires all published modules, and a new project. Dependencies come
// from the module cache, or from the proxies that the environment names.
func (r *release) install(ctx context.Context) error {
	proxy, bin := filepath.Join(r.work, "proxy"), filepath.Join(r.work, "bin")
	if err := r.serve(ctx, proxy); err != nil {
		return err
	}
	root, err := modulePath(r.clone)
	if err != nil {
		return err
	}
	settings, err := output(exec.CommandContext(ctx, "go", "env", "GOMODCACHE", "GOPROXY"))
	if err != nil {
		return err
	}
	cache, others, _ := strings.Cut(settings, "\n")
	environment := append(os.Environ(),
		"GOPROXY="+strings.Join([]string{"file://" + filepath.ToSlash(proxy), "file://" + filepath.ToSlash(filepath.Join(cache, "cache", "download")), others}, ","),
		"GOSUMDB=off", // the version is not public yet; the rest was verified when it was downloaded
		"GOMODCACHE="+filepath.Join(r.work, "modules"), "GOFLAGS=-modcacherw -trimpath", "GOBIN="+bin, "GOWORK=off")
	run := func(folder string, args ...string) error {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir, cmd.Env = folder, environment
		out, err := output(cmd)
		if out != "" {
			fmt.Fprintln(r.out, "  ", out)
		}
		return err
	}
	if err := run(r.work, "go", "install", root+"/"+r.command+"@"+r.version); err != nil {
		return err
	}
	if err := run(r.work, filepath.Join(bin, filepath.Base(r.command)), "version"); err != nil {
		return err
	}
	user := filepath.Join(r.work, "user")
	if err := os.Mkdir(user, 0o755); err != nil {
		return err
	}
	if err := run(user, "go", "mod", "init", "example.com/user"); err != nil {
		return err
	}
	get := []string{"go", "get"}
	for _, folder := range r.modules {
		module, err := modulePath(filepath.Join(r.clone, filepath.FromSlash(folder)))
		if err != nil {
			return err
		}
		if !strings.HasPrefix(folder, "cmd/") { // commands are installed, not imported
			get = append(get, module+"@"+r.version)
		}
	}
	if err := run(user, get...); err != nil || r.starter == nil {
		return err
	}
	if err := run(r.work, append([]string{filepath.Join(bin, filepath.Base(r.command))}, r.starter...)...); err != nil {
		return err
	}
	return run(filepath.Join(r.work, "demo"), "go", "vet", "./...") // compiles the project and its tests
}
