package main

import (
	"encoding/json"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// report is the line that a supervised devcluster prints on stdout: it is ready, or it
// has failed with Error. A later failure is a second line.
type report struct {
	Ready      bool   `json:"ready"`
	Kubeconfig string `json:"kubeconfig,omitempty"` // path
	Server     string `json:"server,omitempty"`     // URL
	Version    string `json:"version,omitempty"`    // of Kubernetes
	Log        string `json:"log,omitempty"`        // path; "" means none
	Etcd       string `json:"etcd,omitempty"`       // the address of its socket
	Error      string `json:"error,omitempty"`
}

// reporter writes reports to the parent process in JSON, or to a person as text.
type reporter struct {
	supervised     bool
	stdout, stderr *os.File
}

// newReporter duplicates the two streams. redirectLogs can then give their numbers to
// the components.
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

// starting prints the path of the log, in case the process crashes.
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

// failed prints the error and returns its exit code.
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
	// A broken pipe means that the parent has ended, which stdin reports as well.
	_ = json.NewEncoder(r.stdout).Encode(line)
}

// redirectLogs empties the file, and redirects everything that components print to it,
// including a panic of the process.
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
