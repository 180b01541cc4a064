package cli

import (
	"io/fs"
	"math"
	"strconv"
	"strings"
)

// memoryShare is the share of the container's memory that the Go runtime may use. The
// rest is for what the runtime does not count, such as memory of the kernel.
const memoryShare = 0.9

// memoryLimit returns the soft limit for the memory of the Go runtime, from the limit
// of the container; 0 if there is none. The garbage collector then works harder near
// the limit, instead of letting the kernel end the process. cgroups is the folder
// /sys/fs/cgroup. A variable GOMEMLIMIT has precedence: the runtime has read it.
func memoryLimit(cgroups fs.FS, variable string) int64 {
	if variable != "" {
		return 0
	}
	for _, name := range []string{"memory.max", "memory/memory.limit_in_bytes"} { // of version 2 and 1
		raw, err := fs.ReadFile(cgroups, name)
		if err != nil {
			continue
		}
		limit, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
		if err != nil || limit <= 0 || limit > math.MaxInt64/2 { // "max", or what version 1 has for none
			return 0
		}
		return int64(float64(limit) * memoryShare)
	}
	return 0
}
