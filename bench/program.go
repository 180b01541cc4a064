package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"gopf.dev/gopf/bench/proc"
	"gopf.dev/gopf/bench/proto"
)

// program is a measured operator, or a baseline.
type program struct {
	name    string
	command []string
}

// The names of the programs in results.
const (
	gopfName    = "Gopf"
	statusName  = "Gopf, state in the status"
	typedName   = "controller-runtime, typed"
	untypedName = "controller-runtime, unstructured"
	kopfName    = "Kopf"
	bareName    = "bare client"
)

// programs builds the programs into the folder. Kopf is included if the environment defines
// how to run it.
func programs(ctx context.Context, folder string) (map[string]program, error) {
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", folder+"/", "./operators/...")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("build the operators: %w", err)
	}
	found := map[string]program{
		gopfName:    {gopfName, []string{filepath.Join(folder, "gopf")}},
		statusName:  {statusName, []string{filepath.Join(folder, "gopf"), "--status"}},
		typedName:   {typedName, []string{filepath.Join(folder, "runtime"), "--typed"}},
		untypedName: {untypedName, []string{filepath.Join(folder, "runtime")}},
		bareName:    {bareName, []string{filepath.Join(folder, "bare")}},
	}
	if command := os.Getenv("KOPF_COMMAND"); command != "" {
		found[kopfName] = program{kopfName, append(strings.Fields(command), "operators/kopf/operator.py")}
	}
	return found, nil
}

// process is a running program.
type process struct {
	cmd     *exec.Cmd
	stdin   io.Closer
	harness *proto.Client
	began   time.Time
	exited  chan struct{}
	errs    *os.File
}

// start runs the program for a resource.
func (p program) start(kubeconfig, resource, does string, more ...string) (*process, error) {
	args := append(p.command[1:len(p.command):len(p.command)], "--resource", resource, "--does", does)
	args = append(args, more...)
	cmd := exec.Command(p.command[0], args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	// It ends when this process ends in any way.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	errs, err := os.CreateTemp("", "gopf-bench-*.log")
	if err != nil {
		return nil, err
	}
	cmd.Stderr = errs
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	running := &process{cmd: cmd, stdin: stdin, harness: proto.NewClient(stdin, stdout), began: began, exited: make(chan struct{}), errs: errs}
	go func() { _ = cmd.Wait(); close(running.exited) }()
	return running, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// stop stops the program.
func (p *process) stop() {
	_ = p.stdin.Close()
	select {
	case <-p.exited:
	case <-time.After(10 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
	_ = p.errs.Close()
	_ = os.Remove(p.errs.Name())
}

// problem returns the last output of the program.
func (p *process) problem() string {
	text, _ := os.ReadFile(p.errs.Name())
	return string(text[max(0, len(text)-2000):])
}

// await requests the counts of the program until they fit.
func (p *process) await(limit time.Duration, what string, fits func(proto.Stats) bool) (proto.Stats, error) {
	deadline := time.Now().Add(limit)
	for {
		s, err := p.harness.Ask("counts")
		if err != nil {
			return s, fmt.Errorf("%w: %s", err, p.problem())
		}
		if fits(s) {
			return s, nil
		}
		if time.Now().After(deadline) {
			return s, fmt.Errorf("%s: not within %v (%+v): %s", what, limit, s, p.problem())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// quiet waits until the program uses no more CPU time, and returns its total CPU time.
func (p *process) quiet() (time.Duration, error) {
	last, err := proc.CPU(p.pid())
	for since := time.Now(); err == nil && time.Since(since) < 400*time.Millisecond; {
		time.Sleep(50 * time.Millisecond)
		var now time.Duration
		if now, err = proc.CPU(p.pid()); now > last {
			last, since = now, time.Now()
		}
	}
	return last, err
}

// settled returns the memory after a forced garbage collection.
func (p *process) settled() (proc.Memory, error) {
	before, err := proc.MemoryOf(p.pid())
	if err != nil {
		return before, err
	}
	for range 2 { // objects with finalizers are freed by the second one
		if _, err := p.harness.Ask("gc"); err != nil {
			return before, err
		}
	}
	time.Sleep(100 * time.Millisecond)
	after, err := proc.MemoryOf(p.pid())
	after.Peak = before.Peak
	return after, err
}

var errNothing = errors.New("nothing was measured")
