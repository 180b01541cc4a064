package gopf

import (
	"testing"

	"gopf.dev/gopf/internal/buildinfo"
)

func TestUserAgentNamesProgramAndFramework(t *testing.T) {
	for want, c := range map[string]struct {
		program string
		build   buildinfo.Info
	}{
		"myoperator/1.2.3 gopf/0.4.0": {"myoperator", buildinfo.Info{Version: "v1.2.3", Framework: "v0.4.0"}},
		"operator/devel gopf/devel":   {"", buildinfo.Info{Version: "(devel)", Framework: "(devel)"}},
	} {
		if got := userAgent(c.program, c.build); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
