// Package controlplane builds, starts and stops a real Kubernetes control plane as
// a child process, for tests and development.
//
// The process is the command devcluster, a module of its own in this repository,
// so that nothing here depends on Kubernetes. See Build for how it comes to be.
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

// stopLimit is how long the process may take to stop. It promises 5 s.
const stopLimit = 10 * time.Second

// Options say what kind of control plane to start.
type Options struct {
	// Data is the folder that keeps objects, keys and port: stopping and starting on
	// the same folder gives the same cluster with the same kubeconfig. Empty means a
	// temporary one, removed at the end.
	Data string

	// Port to serve on, on 127.0.0.1. Zero means the one that Data keeps, else a free one.
	Port int

	// LogFile gets the components' logs, from its beginning. Empty means
	// devcluster.log in the data folder; a temporary folder's log survives failures only.
	LogFile string

	// Bench makes it fit for measurements: it waits for no disk, and keeps all
	// versions of objects.
	Bench bool

	// Progress gets a few lines in case the control plane must be built first.
	// Nil means nobody is interested.
	Progress io.Writer
}

// ControlPlane is a running control plane. It ends when Stop is called or when this
// process ends, however violently.
type ControlPlane struct {
	cmd   *exec.Cmd
	pipe  io.Closer // the process ends when this is closed
	ready report
	temp  bool // the data folder is the process's own, to be removed after it

	done   chan struct{} // closed when the process is gone
	failed report        // what it said last, if it failed; to be read after done
	exit   error         // how it exited; to be read after done

	stop    sync.Once
	stopErr error
}

// report is a line that the process prints: it is ready, or it failed.
type report struct {
	Ready      bool   `json:"ready"`
	Kubeconfig string `json:"kubeconfig"`
	Server     string `json:"server"`
	Version    string `json:"version"`
	Log        string `json:"log"`
	Etcd       string `json:"etcd"`
	Error      string `json:"error"`
}

// Start builds the control plane if that was not done before, starts it, and waits
// until its API server and controllers are ready. The context bounds these steps,
// not the life of the result.
func Start(ctx context.Context, o Options) (*ControlPlane, error) {
	path, err := Build(ctx, o.Progress)
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
	// Until the process tells, and in case it crashes before.
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

// follow reads what the process says until it is gone.
func (c *ControlPlane) follow(stdout io.Reader, ready chan<- report, stderr *tail) {
	defer close(c.done)
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		var line report
		switch err := json.Unmarshal(lines.Bytes(), &line); {
		case err != nil:
			c.failed.Error = "it said: " + lines.Text()
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

// Kubeconfig is the path of the administrator's kubeconfig. The file contains all
// keys, so it may be copied.
func (c *ControlPlane) Kubeconfig() string { return c.ready.Kubeconfig }

// Server is the URL of the API server.
func (c *ControlPlane) Server() string { return c.ready.Server }

// Version of Kubernetes, like v1.37.1.
func (c *ControlPlane) Version() string { return c.ready.Version }

// Log is the path of the components' log.
func (c *ControlPlane) Log() string { return c.ready.Log }

// Etcd is the address of the database's socket, for clients that only this user
// can be.
func (c *ControlPlane) Etcd() string { return c.ready.Etcd }

// PID is the number of the process.
func (c *ControlPlane) PID() int { return c.cmd.Process.Pid }

// Done is closed when the process is gone: by itself, which Err explains, or by Stop.
func (c *ControlPlane) Done() <-chan struct{} { return c.done }

// Err tells why the process ended, once Done is closed.
func (c *ControlPlane) Err() error {
	text, log := c.failed.Error, c.failed.Log
	if text == "" {
		text = "the process ended"
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

// Stop ends the process and waits for it, at most 10 s; then it is killed. Calling
// it again, or after the process ended by itself, is allowed.
func (c *ControlPlane) Stop() error {
	c.stop.Do(func() { c.stopErr = c.end() })
	return c.stopErr
}

func (c *ControlPlane) end() error {
	_ = c.pipe.Close() // it fails only if the process closed it before
	late := time.NewTimer(stopLimit)
	defer late.Stop()
	select {
	case <-c.done:
		return nil
	case <-late.C:
	}
	_ = c.cmd.Process.Kill() // it fails only if the process is gone
	<-c.done
	if c.temp && c.ready.Kubeconfig != "" {
		_ = os.RemoveAll(filepath.Dir(c.ready.Kubeconfig))
	}
	return fmt.Errorf("stop the control plane: it took longer than %v and was killed", stopLimit)
}
