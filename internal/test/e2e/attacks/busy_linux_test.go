package attacks_test

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

const (
	// maxStretch limits the factor by which other processes prolong a limit.
	maxStretch = 10
	// quiet is the share of the processors that other processes may use on a machine that
	// counts as quiet.
	quiet = 0.1
	// maxSlowness limits the time that the API server may add to a limit.
	maxSlowness = 10 * time.Second
)

// stopwatch measures a wait, and how much of the machine other processes use meanwhile.
// The operator, the control plane and this test are no other processes: their load is
// part of the attack, and must not excuse the operator.
type stopwatch struct {
	began       time.Time
	own         []int // process ids
	used, usage time.Duration
}

func startWatch(own ...int) stopwatch {
	return stopwatch{began: time.Now(), own: own, used: machineTime(), usage: processTime(own)}
}

// late reports whether the wait exceeds the limit. On a quiet machine, that is exactly the
// limit. If other processes use the processors, the limit grows by at most [maxStretch].
func (w stopwatch) late(limit time.Duration) bool {
	took := time.Since(w.began)
	return took > limit && took > w.stretched(limit, took)
}

func (w stopwatch) stretched(limit, took time.Duration) time.Duration {
	others := (machineTime() - w.used) - (processTime(w.own) - w.usage)
	share := float64(others) / (float64(took) * float64(runtime.NumCPU()))
	return time.Duration(float64(limit) * stretch(share))
}

// stretch returns the factor for the share of the processors that other processes use.
func stretch(share float64) float64 {
	if share <= quiet {
		return 1
	}
	return min(maxStretch, 1/max(1-share, 1.0/maxStretch))
}

const tick = 10 * time.Millisecond // the unit of processor times in /proc

// machineTime returns the processor time of all processes since the start of the machine,
// including what the hypervisor withheld.
func machineTime() time.Duration {
	raw, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(raw), "\n")
	var user, nice, system, idle, iowait, irq, softirq, steal int64
	if _, err := fmt.Sscanf(line, "cpu %d %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &iowait, &irq, &softirq, &steal); err != nil {
		return 0 // as if there were no other processes
	}
	return time.Duration(user+nice+system+steal) * tick
}

func processTime(ids []int) (sum time.Duration) {
	for _, id := range ids {
		raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
		// The name of the program may contain spaces. It ends with the last parenthesis.
		fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
		for _, at := range []int{11, 12} { // in user mode, in the kernel
			if at < len(fields) {
				n, _ := strconv.ParseInt(fields[at], 10, 64) // an ended process has no time
				sum += time.Duration(n) * tick
			}
		}
	}
	return sum
}

// listener returns the process that listens on the port of a local URL, or 0.
func listener(of string) int {
	u, err := url.Parse(of)
	if err != nil {
		return 0
	}
	_, port, _ := net.SplitHostPort(u.Host)
	number, _ := strconv.Atoi(port)
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(table)
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			if len(fields) < 10 || fields[3] != "0A" || !strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", number)) {
				continue
			}
			if id := holder("socket:[" + fields[9] + "]"); id != 0 {
				return id
			}
		}
	}
	return 0
}

// holder returns a process that has the file open, or 0.
func holder(file string) int {
	all, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, path := range all {
		if to, _ := os.Readlink(path); to == file {
			id, _ := strconv.Atoi(strings.Split(path, "/")[2])
			return id
		}
	}
	return 0
}
