package main

import (
	"encoding/json"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// report is the one line that a supervised devcluster prints on stdout: either it
// is ready, or Error says why it will not be. A failure after that is told by a
// second line.
type report struct {
	Ready      bool   `json:"ready"`
	Kubeconfig string `json:"kubeconfig,omitempty"` // path
	Server     string `json:"server,omitempty"`     // URL
	Version    string `json:"version,omitempty"`    // of Kubernetes
	Log        string `json:"log,omitempty"`        // path; empty if there is none
	Etcd       string `json:"etcd,omitempty"`       // the address of its socket
	Error      string `json:"error,omitempty"`
}

// reporter talks to whoever started the process, in JSON or in words.
type reporter struct {
	supervised     bool
	stdout, stderr *os.File
}

// newReporter keeps the two streams for itself, so that redirectLogs can give
// their numbers to the components.
func newReporter(supervised bool) (*reporter, error) {
	stdout, err := duplicate(os.Stdout)
	if err != nil {
		return nil, err
	}
	stderr, err := duplicate(os.Stderr)
	if err != nil {
		return nil, err
	}
	return &reporter{supervised: supervised, stdout: stdout, stderr: stderr}, nil
}

// starting tells a person where to look if the process crashes.
func (r *reporter) starting(log string) {
	if !r.supervised {
		fmt.Fprintf(r.stdout, "Starting Kubernetes; its logs are in %s.\n", log)
	}
}

func (r *reporter) ready(line report, f *folder) {
	if r.supervised {
		line.Ready = true
		r.print(line)
		return
	}
	kept := "kept in " + f.data
	if f.temporary {
		kept = "removed at the end"
	}
	fmt.Fprintf(r.stdout, "Kubernetes %s is ready on %s; its data is %s.\n\n  export KUBECONFIG=%s\n\nStop it with Ctrl-C.\n",
		line.Version, line.Server, kept, line.Kubeconfig)
}

// failed tells the error and returns the exit code for it.
func (r *reporter) failed(err error, log string) int {
	if r.supervised {
		r.print(report{Error: err.Error(), Log: log})
		return exitFailure
	}
	see := ""
	if log != "" {
		see = "; see " + log
	}
	fmt.Fprintf(r.stderr, "devcluster: %v%s\n", err, see)
	return exitFailure
}

func (r *reporter) print(line report) {
	// Nobody is left to be told when the pipe is broken; stdin says so too.
	_ = json.NewEncoder(r.stdout).Encode(line)
}

// redirectLogs sends everything that components print, a panic of the process
// included, to the file, which it empties first.
func redirectLogs(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	defer file.Close()
	for _, stream := range []int{unix.Stdout, unix.Stderr} {
		if err := unix.Dup2(int(file.Fd()), stream); err != nil {
			return fmt.Errorf("redirect output to the log: %w", err)
		}
	}
	return nil
}

func duplicate(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("duplicate %s: %w", f.Name(), err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}
