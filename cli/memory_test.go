package cli

import (
	"testing"
	"testing/fstest"
)

func TestTheMemoryLimitComesFromTheContainer(t *testing.T) {
	file := func(name, text string) fstest.MapFS { return fstest.MapFS{name: {Data: []byte(text)}} }
	for name, c := range map[string]struct {
		cgroups  fstest.MapFS
		variable string
		want     int64
	}{
		"version 2":           {file("memory.max", "1000000000\n"), "", 900000000},
		"version 1":           {file("memory/memory.limit_in_bytes", "1000000000\n"), "", 900000000},
		"without a limit":     {file("memory.max", "max\n"), "", 0},
		"no limit, version 1": {file("memory/memory.limit_in_bytes", "9223372036854771712\n"), "", 0},
		"set by hand":         {file("memory.max", "1000000000\n"), "off", 0},
		"not in a container":  {fstest.MapFS{}, "", 0},
		"unreadable":          {file("memory.max", "?"), "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := memoryLimit(c.cgroups, c.variable); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}
