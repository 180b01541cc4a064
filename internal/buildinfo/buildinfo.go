// Package buildinfo tells which versions of the program and of the framework are
// running, from what the Go command put into the executable.
package buildinfo

import (
	"fmt"
	"runtime/debug"
	"strings"
)

// Framework is the path of the module of the framework.
const Framework = "gopf.dev/gopf"

// unknown is the version of modules that were built from a working copy.
const unknown = "(devel)"

// Info is what an executable was built of.
type Info struct {
	Path      string // of the main module
	Version   string // of the main module; "(devel)" if unknown
	Framework string // version of the framework; "(devel)" if unknown
	Go        string // version of Go
	Commit    string // of the main module; "" if unknown
	Modified  bool   // there were changes that are not in the commit
}

// Read returns what this executable was built of.
func Read() Info {
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return Info{Version: unknown, Framework: unknown}
	}
	return from(b)
}

func from(b *debug.BuildInfo) Info {
	i := Info{Path: b.Main.Path, Version: b.Main.Version, Framework: unknown, Go: b.GoVersion}
	if i.Version == "" {
		i.Version = unknown
	}
	if i.Path == Framework {
		i.Framework = i.Version
	}
	for _, dep := range b.Deps {
		if dep.Path == Framework {
			i.Framework = dep.Version
			if dep.Replace != nil && dep.Replace.Version == "" {
				i.Framework = unknown // from a folder
			}
		}
	}
	for _, s := range b.Settings {
		switch s.Key {
		case "vcs.revision":
			i.Commit = s.Value
		case "vcs.modified":
			i.Modified = s.Value == "true"
		}
	}
	return i
}

// Source says which commit the program was built from, as " (commit 0123abcd, with
// changes)" after a space; "" if it is not known.
func (i Info) Source() string {
	if i.Commit == "" {
		return ""
	}
	commit := i.Commit[:min(12, len(i.Commit))]
	if i.Modified {
		return fmt.Sprintf(" (commit %s, with changes)", commit)
	}
	return fmt.Sprintf(" (commit %s)", commit)
}

// Token returns a version as HTTP headers may have it: without the "v" in front, and
// "devel" if it is not known.
func Token(version string) string {
	version = strings.TrimPrefix(version, "v")
	clean := strings.Map(func(r rune) rune {
		if r > ' ' && r < 0x7f && !strings.ContainsRune(`()<>@,;:\"/[]?={}`, r) {
			return r
		}
		return -1
	}, version)
	if clean == "" {
		return "devel"
	}
	return clean
}
