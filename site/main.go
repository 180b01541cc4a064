// Command site builds the manual as a static site, without requests to other servers. It runs
// in the folder site:
//
//	go run . -version v0.1.0
//
// The site is in a folder for its version; earlier versions next to it stay, and the pages
// offer all of them.
package main

import (
	"context"
	"embed"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"gopf.dev/gopf/site/manual"
)

//go:embed all:theme
var theme embed.FS

// options are the flags.
type options struct {
	root, out, version, repository, hugo string
}

func main() {
	var o options
	flag.StringVar(&o.root, "root", "..", "the folder of the repository")
	flag.StringVar(&o.out, "out", "../bin/site", "the folder of the site")
	flag.StringVar(&o.version, "version", "dev", "the version that the pages describe")
	flag.StringVar(&o.repository, "repository", "https://gopf.dev/source", "the public address of the repository, for links to files and for edits")
	flag.StringVar(&o.hugo, "hugo", "", "the executable of Hugo; default: the one that go.mod pins, built on first use")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := build(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "build the site:", err)
		os.Exit(1)
	}
	fmt.Println("The site is in", filepath.Join(o.out, o.version, "index.html"))
}

// build writes the site of one version, and the list of all versions.
func build(ctx context.Context, o options) error {
	s, err := manual.Read(o.root, o.repository, o.version)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "gopf-site-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	files, err := fs.Sub(theme, "theme")
	if err != nil {
		return err
	}
	if err := os.CopyFS(work, files); err != nil {
		return err
	}
	if err := s.Write(work); err != nil {
		return err
	}
	target, err := filepath.Abs(filepath.Join(o.out, o.version))
	if err != nil {
		return err
	}
	if err := os.RemoveAll(target); err != nil {
		return err
	}
	if err := render(ctx, o.hugo, work, target); err != nil {
		return err
	}
	return writeVersions(o.out)
}

// render runs Hugo.
func render(ctx context.Context, hugo, work, target string) error {
	args := []string{"--source", work, "--destination", target, "--noBuildLock", "--logLevel", "warn", "--cacheDir", filepath.Join(work, "cache")}
	run := exec.CommandContext(ctx, "go", append([]string{"tool", "hugo"}, args...)...)
	if hugo != "" {
		run = exec.CommandContext(ctx, hugo, args...)
	}
	run.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	if out, err := run.CombinedOutput(); err != nil {
		return fmt.Errorf("hugo: %w: %s", err, out)
	}
	return nil
}

// writeVersions lists the folders with sites, newest first, and leads from the top to the
// newest release, or to the development version if there is none.
func writeVersions(out string) error {
	pages, err := filepath.Glob(filepath.Join(out, "*", "llms.txt"))
	if err != nil {
		return err
	}
	var versions []string
	for _, p := range pages {
		versions = append(versions, filepath.Base(filepath.Dir(p)))
	}
	slices.SortFunc(versions, newestFirst)
	script := fmt.Sprintf("var gopfVersions = [\"%s\"];\n", strings.Join(versions, `", "`))
	if err := os.WriteFile(filepath.Join(out, "versions.js"), []byte(script), 0o644); err != nil {
		return err
	}
	first := versions[0]
	if first == "dev" && len(versions) > 1 {
		first = versions[1]
	}
	page := fmt.Sprintf("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Gopf</title><meta http-equiv=\"refresh\" content=\"0; url=%s/index.html\"><a href=\"%[1]s/index.html\">Gopf</a></html>\n", first)
	if err := os.WriteFile(filepath.Join(out, "index.html"), []byte(page), 0o644); err != nil {
		return err
	}
	for _, name := range []string{"llms.txt", "llms-full.txt"} {
		text, err := os.ReadFile(filepath.Join(out, first, name))
		if err != nil {
			return err
		}
		if name == "llms.txt" {
			text = []byte(strings.ReplaceAll(string(text), "](", "]("+first+"/"))
		}
		if err := os.WriteFile(filepath.Join(out, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// newestFirst orders versions: the development version, then releases by their numbers.
func newestFirst(a, b string) int {
	if (a == "dev") != (b == "dev") {
		if a == "dev" {
			return -1
		}
		return 1
	}
	return slices.Compare(numbersOf(b), numbersOf(a))
}

func numbersOf(version string) []int {
	var list []int
	for part := range strings.SplitSeq(strings.TrimPrefix(version, "v"), ".") {
		n := 0
		_, _ = fmt.Sscanf(part, "%d", &n) // a part without a number counts as 0
		list = append(list, n)
	}
	return list
}
