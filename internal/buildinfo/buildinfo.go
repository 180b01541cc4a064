// Package buildinfo returns the versions of the running program and the framework, from
// the build information in the executable.
package buildinfo

import (
	"fmt"
	"runtime/debug"
	"strings"
)

// Framework is the module path of the framework.
const Framework = "gopf.dev/gopf"

// unknown is the version of modules that were built from a working copy.
const unknown = "(devel)"

// Info describes the build of an executable.
type Info struct {
	Path      string // of the main module
	Version   string // of the main module; "(devel)" if unknown
	Framework string // version of the framework; "(devel)" if unknown
	Go        string // version of Go
	Commit    string // of the main module; empty if unknown
	Modified  bool   // there were uncommitted changes
}

// Read returns the build information of this executable.
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
				i.Framework = unknown // replaced by a directory
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

// Source returns the commit of the program with a leading space, for example " (commit
// 0123abcd, with changes)". It is empty if unknown.
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

// Token returns a version for HTTP headers: without the leading "v", and "devel" if it
// is unknown.
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
