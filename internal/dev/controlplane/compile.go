package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// progressPause is the time between two lines about a running build.
const progressPause = 30 * time.Second

// toolchain is the Go toolchain: its version, and its host platform. The control plane is
// built for the host even if the environment sets another target platform.
type toolchain struct {
	Version string `json:"GOVERSION"`
	OS      string `json:"GOHOSTOS"`
	Arch    string `json:"GOHOSTARCH"`
}

func findToolchain(ctx context.Context, dir string) (toolchain, error) {
	out, err := goTool(ctx, dir, nil, "env", "-json", "GOVERSION", "GOHOSTOS", "GOHOSTARCH")
	if err != nil {
		return toolchain{}, err
	}
	var t toolchain
	if err := json.Unmarshal(out, &t); err != nil {
		return toolchain{}, fmt.Errorf("decode the output of go env: %w", err)
	}
	return t, nil
}

// goTool runs the go command in dir and returns its output, even on error. It ignores flags
// and workspaces that the environment sets for other builds.
func goTool(ctx context.Context, dir string, env []string, args ...string) ([]byte, error) {
	cmd := goCommand(ctx, dir, env, args...)
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, errors.New("the go command is not in PATH; install Go, or set " + binaryVariable + " to a built control plane")
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return out, fmt.Errorf("go %s: %w: %s", args[0], err, bytes.TrimSpace(exit.Stderr))
	}
	if err != nil {
		return nil, fmt.Errorf("go %s: %w", args[0], err)
	}
	return out, nil
}

// goCommand returns a go command. The variables in env take precedence.
func goCommand(ctx context.Context, dir string, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PWD="+dir, "GOFLAGS=-mod=readonly", "GOWORK=off", "CGO_ENABLED=0")
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// compile builds the sources into the file path, and reports progress. The variables in env
// take precedence.
func compile(ctx context.Context, src source, t toolchain, path string, progress io.Writer, env ...string) error {
	cmd := goCommand(ctx, src.dir, append([]string{"GOOS=" + t.OS, "GOARCH=" + t.Arch}, env...),
		"build", "-v", "-buildvcs=false", "-ldflags", src.linkerFlags(), "-o", path, ".")
	return follow(ctx, cmd, "the control plane", progressPause, progress)
}

// follow runs a command of go build -v. While it builds packages, progress receives a line
// about it every pause, and one at the end.
func follow(ctx context.Context, cmd *exec.Cmd, what string, pause time.Duration, progress io.Writer) error {
	// The go command forwards an interrupt to its compilers, but not a kill.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	output := &buildOutput{problems: tail{limit: 4 << 10}}
	cmd.Stdout, cmd.Stderr = output, output

	began, finished := time.Now(), make(chan error, 1)
	go func() { finished <- cmd.Run() }()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			fmt.Fprintf(progress, "Still building %s: %v, %s.\n", what, time.Since(began).Round(time.Second), output.count())
		case err := <-finished:
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err != nil {
				return fmt.Errorf("go build in %s: %w: %s", cmd.Dir, err, output.problem())
			}
			if output.any() {
				fmt.Fprintf(progress, "Built %s in %v.\n", what, time.Since(began).Round(time.Second))
			}
			return nil
		}
	}
}

// buildOutput parses the output of go build -v: one line per compiled package, "go:
// downloading …", and problems.
type buildOutput struct {
	mu                   sync.Mutex
	rest                 []byte
	compiled, downloaded int
	problems             tail
}

func (b *buildOutput) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rest = append(b.rest, p...)
	for {
		line, rest, complete := bytes.Cut(b.rest, []byte("\n"))
		if !complete {
			return len(p), nil
		}
		b.rest = rest
		switch text := string(line); {
		case strings.HasPrefix(text, "go: downloading "):
			b.downloaded++
		case !strings.ContainsAny(text, " \t#"):
			b.compiled++
		default:
			_, _ = b.problems.Write([]byte(text + "\n")) // cannot fail
		}
	}
}

// any reports whether packages were compiled.
func (b *buildOutput) any() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.compiled > 0
}

func (b *buildOutput) count() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.compiled == 0 && b.downloaded > 0 {
		return fmt.Sprintf("%d modules downloaded", b.downloaded)
	}
	return fmt.Sprintf("%d packages compiled", b.compiled)
}

func (b *buildOutput) problem() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.TrimSpace(b.problems.String() + "\n" + string(b.rest))
}
