// Package proc reads the resource usage of processes from the system.
package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of CPU times, the same on all Linux systems.
const tick = 10 * time.Millisecond

// CPU returns the CPU time of a process, in user and system mode.
func CPU(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name, in parentheses, may contain anything.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	var sum time.Duration
	for _, f := range fields[11:13] {
		n, err := strconv.Atoi(f)
		if err != nil {
			return 0, fmt.Errorf("read the times of process %d: %w", pid, err)
		}
		sum += time.Duration(n) * tick
	}
	return sum, nil
}

// Memory is the resident memory of a process now, and its peak since ResetPeak, in bytes.
type Memory struct{ RSS, Peak int64 }

// MemoryOf returns the memory of a process.
func MemoryOf(pid int) (m Memory, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return m, err
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		into := map[string]*int64{"VmRSS": &m.RSS, "VmHWM": &m.Peak}[name]
		if into == nil {
			continue
		}
		kb, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
		if err != nil {
			return m, fmt.Errorf("read the memory of process %d: %w", pid, err)
		}
		*into = kb << 10
	}
	return m, nil
}

// ResetPeak resets the peak to the current memory.
func ResetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}

// Busy is the CPU time since the boot, in ticks: in total, idle, and stolen by other virtual
// machines.
type Busy struct{ Total, Idle, Stolen float64 }

// Load returns the CPU times of the machine.
func Load() (b Busy, err error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return b, err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for i, f := range strings.Fields(line)[1:] {
		n, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return b, err
		}
		if i < 8 {
			b.Total += n
		}
		switch i {
		case 3, 4:
			b.Idle += n
		case 7:
			b.Stolen += n
		}
	}
	return b, nil
}

// Machine describes the processor and the memory.
func Machine() string {
	model := "unknown processor"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
			}
		}
	}
	memory := ""
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		fields := strings.Fields(string(text))
		if kb, err := strconv.Atoi(fields[1]); err == nil {
			memory = fmt.Sprintf(", %d GB", kb>>20)
		}
	}
	return model + memory
}
