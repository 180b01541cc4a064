package main

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// proxyFolder is the folder of a project with the modules of gopf, as a module proxy.
const proxyFolder = ".gopf"

// unreleased is the version of the modules of gopf in a checkout.
const unreleased = "v0.0.0"

// newProxy returns the hidden command that writes the modules of gopf into the build context
// of an image. Projects of a published version do not need it.
func newProxy() *cobra.Command {
	return &cobra.Command{
		Use:   "proxy FOLDER",
		Short: "Write the modules of gopf into a folder, as a module proxy",
		Long: `Write the modules gopf.dev/gopf and gopf.dev/gopf/gopftest from the checkout of this
command into a folder. The go command uses the folder with GOPROXY=file://FOLDER. So the
image of a project is built without files outside of its build context, although gopf has
no published version.`,
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			checkout := ownCheckout()
			if checkout == "" {
				return errors.New("the sources of this gopf are not here; if it is a published version, remove the lines about .gopf from the Makefile and the Dockerfile")
			}
			return writeProxy(checkout, args[0])
		},
	}
}

// writeProxy writes the modules of the checkout into a folder with the layout of module
// proxies. It replaces earlier files.
func writeProxy(checkout, folder string) error {
	for module, dir := range map[string]string{"gopf.dev/gopf": checkout, "gopf.dev/gopf/gopftest": filepath.Join(checkout, "gopftest")} {
		if err := writeModule(module, dir, filepath.Join(folder, filepath.FromSlash(module), "@v")); err != nil {
			return fmt.Errorf("write the module %s: %w", module, err)
		}
	}
	return nil
}

// writeModule writes the four files of one module.
func writeModule(module, dir, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"list": unreleased + "\n", unreleased + ".mod": string(mod),
		unreleased + ".info": fmt.Sprintf(`{"Version":%q,"Time":"2000-01-01T00:00:00Z"}`+"\n", unreleased),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	file, err := os.Create(filepath.Join(folder, unreleased+".zip"))
	if err != nil {
		return err
	}
	return errors.Join(zipModule(file, module+"@"+unreleased+"/", dir), file.Close())
}

// zipModule writes the files of a module that builds need. Files of nested modules and tests
// are left out.
func zipModule(w io.Writer, prefix, dir string) error {
	archive := zip.NewWriter(w)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		if d.IsDir() {
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil || leftOut(d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || leftOut(d.Name()) {
			return nil
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		entry, err := archive.Create(prefix + filepath.ToSlash(name))
		if err != nil {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		_, err = io.Copy(entry, file)
		return err
	})
	return errors.Join(err, archive.Close())
}

// leftOut reports whether a file or a folder is no part of a module in the proxy.
func leftOut(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, "_test.go") || name == "testdata" || name == "bin" || name == "go.work" || name == "go.work.sum"
}
