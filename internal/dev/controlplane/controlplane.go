// Package controlplane builds, starts and stops a real Kubernetes control plane as a child
// process, for tests and development.
//
// The process is the command devcluster. It is a separate module in this repository, so
// nothing here depends on Kubernetes. See Build for how it is built.
package controlplane

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// stopLimit is the longest time that a stop may take. It should need at most 5 s.
const stopLimit = 10 * time.Second

// Options configure a control plane.
type Options struct {
	// Data is the folder with objects, keys and port. A control plane that is stopped and
	// started with the same folder is the same cluster with the same kubeconfig. Empty
	// means a temporary folder, which is removed at the end.
	Data string

	// Port is the port on 127.0.0.1. 0 means the port stored in Data, or else a free one.
	Port int

	// LogFile receives the logs of the components; it is overwritten. Empty means
	// devcluster.log in the data folder. The log in a temporary folder is kept only after
	// a failure.
	LogFile string

	// Memory starts the in-memory API server instead: no etcd, no controllers, and a build
	// of about a minute instead of eight. It has no log, and cannot use Data and Bench.
	Memory bool

	// Executable is the path of the program to start, if the caller has built it. Empty
	// means that Start builds it.
	Executable string

	// Bench is for measurements: the control plane does not wait for the disk, and keeps
	// all versions of objects.
	Bench bool

	// Progress receives a few lines if the control plane must be built first. May be nil.
	Progress io.Writer
}

// ControlPlane is a running control plane. It ends when Stop is called, or when this
// process ends in any way.
type ControlPlane struct {
	cmd   *exec.Cmd
	pipe  io.Closer // closing it ends the process
	ready report
	temp  bool // the data folder is temporary and must be removed

	done   chan struct{} // closed when the process has exited
	failed report        // its last line, if it failed; read it only after done is closed
	exit   error         // its exit status; read it only after done is closed

	stop    sync.Once
	stopErr error
}

// report is a line printed by the process: it is ready, or it failed.
type report struct {
	Ready      bool   `json:"ready"`
	Kubeconfig string `json:"kubeconfig"`
	Server     string `json:"server"`
	Version    string `json:"version"`
	Log        string `json:"log"`
	Etcd       string `json:"etcd"`
	Error      string `json:"error"`
}

// Start builds the control plane if needed, starts it, and waits until its API server and
// controllers are ready. The context limits these steps, but not the lifetime of the
// control plane.
func Start(ctx context.Context, o Options) (*ControlPlane, error) {
	if o.Executable != "" {
		return start(ctx, o.Executable, o)
	}
	build := Build
	if o.Memory {
		build = buildMemory
	}
	path, err := build(ctx, o.Progress)
	if err != nil {
		return nil, err
	}
	return start(ctx, path, o)
}

func start(ctx context.Context, path string, o Options) (*ControlPlane, error) {
	args := []string{"--supervised"}
	for flag, value := range map[string]string{"--data": o.Data, "--log": o.LogFile} {
		if value != "" {
			args = append(args, flag, value)
		}
	}
	if o.Port != 0 {
		args = append(args, "--port", strconv.Itoa(o.Port))
	}
	if o.Bench {
		args = append(args, "--bench")
	}
	c := &ControlPlane{
		cmd:  exec.Command(path, args...),
		temp: o.Data == "",
		done: make(chan struct{}),
	}
	// For the case that the process crashes before it reports the path.
	switch {
	case o.LogFile != "":
		c.ready.Log = o.LogFile
	case o.Data != "":
		c.ready.Log = filepath.Join(o.Data, "devcluster.log")
	}
	detach(c.cmd)
	stderr := &tail{limit: 4 << 10}
	c.cmd.Stderr = stderr
	pipe, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the control plane: %w", err)
	}
	c.pipe = pipe
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the control plane: %w", err)
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the control plane: %w", err)
	}

	ready := make(chan report, 1)
	go c.follow(stdout, ready, stderr)
	select {
	case c.ready = <-ready:
		return c, nil
	case <-c.done:
		return nil, fmt.Errorf("start the control plane: %w", c.Err())
	case <-ctx.Done():
		return nil, fmt.Errorf("start the control plane: %w", errors.Join(context.Cause(ctx), c.Stop()))
	}
}

// follow reads the output of the process until it exits.
func (c *ControlPlane) follow(stdout io.Reader, ready chan<- report, stderr *tail) {
	defer close(c.done)
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		var line report
		switch err := json.Unmarshal(lines.Bytes(), &line); {
		case err != nil:
			c.failed.Error = "unexpected output: " + lines.Text()
		case line.Ready:
			ready <- line
		default:
			c.failed = line
		}
	}
	c.exit = c.cmd.Wait()
	if c.failed.Error == "" {
		c.failed.Error = stderr.String()
	}
}

// Kubeconfig returns the path of the administrator's kubeconfig. The file contains all
// keys, so it may be copied.
func (c *ControlPlane) Kubeconfig() string { return c.ready.Kubeconfig }

// Server returns the URL of the API server.
func (c *ControlPlane) Server() string { return c.ready.Server }

// Version returns the version of Kubernetes, like v1.37.1.
func (c *ControlPlane) Version() string { return c.ready.Version }

// Log returns the path of the components' log.
func (c *ControlPlane) Log() string { return c.ready.Log }

// Etcd returns the address of the socket of etcd. Only this user can connect to it.
func (c *ControlPlane) Etcd() string { return c.ready.Etcd }

// PID returns the process id.
func (c *ControlPlane) PID() int { return c.cmd.Process.Pid }

// Done returns a channel that is closed when the process has exited: after a failure, which
// Err explains, or after Stop.
func (c *ControlPlane) Done() <-chan struct{} { return c.done }

// Err returns why the process exited. Call it only after Done is closed.
func (c *ControlPlane) Err() error {
	text, log := c.failed.Error, c.failed.Log
	if text == "" {
		text = "the process exited"
		if c.exit != nil {
			text += " with " + c.exit.Error()
		}
	}
	if log == "" {
		log = c.ready.Log
	}
	if info, err := os.Stat(log); err != nil || info.Size() == 0 {
		return errors.New(text)
	}
	return fmt.Errorf("%s; see %s", text, log)
}

// Stop ends the process and waits for it. After 10 s, it kills the process. Stop may be
// called again, and after the process has exited by itself.
func (c *ControlPlane) Stop() error {
	c.stop.Do(func() { c.stopErr = c.end() })
	return c.stopErr
}

func (c *ControlPlane) end() error {
	_ = c.pipe.Close() // it fails only if the process has closed it
	late := time.NewTimer(stopLimit)
	defer late.Stop()
	select {
	case <-c.done:
		return nil
	case <-late.C:
	}
	_ = c.cmd.Process.Kill() // it fails only if the process has exited
	<-c.done
	if c.temp && c.ready.Kubeconfig != "" {
		_ = os.RemoveAll(filepath.Dir(c.ready.Kubeconfig))
	}
	return fmt.Errorf("stop the control plane: it did not stop within %v and was killed", stopLimit)
}
