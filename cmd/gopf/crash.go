package main

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// maxTrace limits the part of a stack trace that is kept.
const maxTrace = 256 << 10

// crashFilter forwards the stderr of an operator, up to the stack trace of a crash. It holds
// the trace back, because gopf dev prints one line about it.
type crashFilter struct {
	mu    sync.Mutex
	to    io.Writer
	rest  []byte // the unfinished last line
	trace bytes.Buffer
}

// Write implements io.Writer.
func (f *crashFilter) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rest = append(f.rest, p...)
	for {
		line, rest, complete := bytes.Cut(f.rest, []byte("\n"))
		if !complete {
			return len(p), nil
		}
		f.rest = rest
		if f.trace.Len() == 0 && !bytes.HasPrefix(line, []byte("panic: ")) && !bytes.HasPrefix(line, []byte("fatal error: ")) {
			if _, err := fmt.Fprintf(f.to, "%s\n", line); err != nil {
				return 0, err
			}
			continue
		}
		if f.trace.Len() < maxTrace {
			f.trace.Write(line)
			f.trace.WriteByte('\n')
		}
	}
}

// crashed returns the stack trace. It is empty if the operator did not crash.
func (f *crashFilter) crashed() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.trace.String()
}

var frameLine = regexp.MustCompile(`^\s+(\S+\.go):(\d+)`)

// summarize returns one line about a stack trace: the cause, and the first place in the given
// folders.
func summarize(trace string, folders []string) string {
	cause, rest, _ := strings.Cut(trace, "\n")
	for line := range strings.Lines(rest) {
		m := frameLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		for _, folder := range folders {
			if filepath.Dir(m[1]) == folder {
				return fmt.Sprintf("%s:%s: %s", filepath.Base(m[1]), m[2], cause)
			}
		}
	}
	return cause
}
