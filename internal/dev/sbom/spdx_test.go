package main

import (
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

func TestTheBillHasAllModulesWithTheirVersions(t *testing.T) {
	m := materials{}
	m.add(&debug.BuildInfo{
		GoVersion: "go1.26.8", Main: debug.Module{Path: root, Version: "(devel)"},
		Deps: []*debug.Module{
			{Path: "k8s.io/api", Version: "v0.37.1", Sum: "h1:AAECAw=="},
			{Path: "example.com/a", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.1.0"}},
		},
	}, "v0.1.0")
	d := m.document("v0.1.0", time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
	var found []string
	for _, p := range d.Packages {
		found = append(found, p.Name+"@"+p.VersionInfo)
	}
	if got, want := strings.Join(found, " "), "example.com/fork@v1.1.0 gopf.dev/gopf@v0.1.0 k8s.io/api@v0.37.1 std@go1.26.8"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := d.Packages[2]; got.SPDXID != "SPDXRef-k8s.io-api" || !strings.HasSuffix(got.Comment, "00010203") {
		t.Errorf("got %+v", got)
	}
	if len(d.Relationships) != 4 || d.CreationInfo.Created != "2030-01-02T03:04:05Z" {
		t.Errorf("got %v, %v", d.Relationships, d.CreationInfo)
	}
}
