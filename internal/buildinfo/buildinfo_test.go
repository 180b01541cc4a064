package buildinfo

import (
	"runtime/debug"
	"testing"
)

func TestVersionsAreFound(t *testing.T) {
	b := &debug.BuildInfo{
		GoVersion: "go1.26", Main: debug.Module{Path: "example.com/op", Version: "v1.2.3"},
		Deps:     []*debug.Module{{Path: "example.com/x", Version: "v9.0.0"}, {Path: Framework, Version: "v0.4.0"}},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}},
	}
	want := Info{Path: "example.com/op", Version: "v1.2.3", Framework: "v0.4.0", Go: "go1.26", Commit: "0123456789abcdef", Modified: true}
	if got := from(b); got != want || got.Source() != " (commit 0123456789ab, with changes)" {
		t.Errorf("got %+v, %q", got, got.Source())
	}
	b.Deps[1].Replace = &debug.Module{Path: "../gopf"}
	if got := from(b).Framework; got != "(devel)" {
		t.Errorf("got %q for a folder", got)
	}
	own := from(&debug.BuildInfo{Main: debug.Module{Path: Framework, Version: "v0.5.0"}})
	if own.Framework != "v0.5.0" || own.Source() != "" {
		t.Errorf("got %+v", own)
	}
	if got := from(&debug.BuildInfo{}).Version; got != "(devel)" {
		t.Errorf("got %q", got)
	}
}

func TestTokens(t *testing.T) {
	for version, want := range map[string]string{"v1.2.3": "1.2.3", "(devel)": "devel", "": "devel", "v0.0.0-2026+dirty": "0.0.0-2026+dirty", "a b/c": "abc"} {
		if got := Token(version); got != want {
			t.Errorf("%q: got %q, want %q", version, got, want)
		}
	}
}
