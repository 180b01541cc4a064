package cli

import (
	"io/fs"
	"math"
	"strconv"
	"strings"
)

// memoryShare is the share of the container's memory for the Go runtime. The rest is for
// memory that the runtime does not count, such as that of the kernel.
const memoryShare = 0.9

// memoryLimit returns the soft memory limit for the Go runtime, derived from the limit of
// the container, or 0 without a limit. With it, the garbage collector works harder near
// the limit, before the kernel kills the process. cgroups is the folder /sys/fs/cgroup.
// variable is the value of GOMEMLIMIT, which takes precedence: the runtime has read it.
func memoryLimit(cgroups fs.FS, variable string) int64 {
	if variable != "" {
		return 0
	}
	for _, name := range []string{"memory.max", "memory/memory.limit_in_bytes"} { // cgroup v2 and v1
		raw, err := fs.ReadFile(cgroups, name)
		if err != nil {
			continue
		}
		limit, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
		if err != nil || limit <= 0 || limit > math.MaxInt64/2 { // "max", or the value for no limit in cgroup v1
			return 0
		}
		return int64(float64(limit) * memoryShare)
	}
	return 0
}
