package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"golang.org/x/term"

	"gopf.dev/gopf/internal/dev/manifests"
)

const keyHelp = "  r reload · t tests on save · d debugger · a apply manifests · k kubectl shell · q quit"

// keyboard delivers the keys that the user presses.
type keyboard struct {
	pressed <-chan byte // nil means no keys
	resume  chan struct{}
	restore func() // restores the former mode of the terminal
	raw     func() // switches to a mode that delivers keys without Enter
}

// keys reads keys from the terminal, or from any input with --keys. Otherwise it delivers
// none.
func (l *loop) keys(ctx context.Context) *keyboard {
	k := &keyboard{restore: func() {}, raw: func() {}, resume: make(chan struct{})}
	if !l.keysWanted && !term.IsTerminal(int(os.Stdin.Fd())) {
		return k
	}
	if term.IsTerminal(int(os.Stdin.Fd())) {
		k.raw, k.restore = keyByKey(os.Stdin)
		k.raw()
	}
	fmt.Fprintln(l.stderr, keyHelp)
	pressed := make(chan byte)
	k.pressed = pressed
	go func() {
		defer close(pressed)
		one := make([]byte, 1)
		for {
			if _, err := io.ReadFull(os.Stdin, one); err != nil {
				return
			}
			select {
			case pressed <- one[0]:
			case <-ctx.Done():
				return
			}
			if one[0] == 'k' { // the shell reads the input now
				select {
				case <-k.resume:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return k
}

// key executes the command of a key. It reports whether the loop must end.
func (l *loop) key(ctx context.Context, key byte, k *keyboard, sets chan watched) (quit bool) {
	switch key {
	case 'r':
		l.reload(ctx, nil, sets)
	case 't':
		if l.tests = !l.tests; l.tests {
			l.say("tests run after each save")
			go l.test(ctx)
		} else {
			l.say("tests do not run after a save")
		}
	case 'd':
		if !l.debug && debuggerPath() == "" {
			l.say("%s", noDebugger)
			return false
		}
		l.debug = !l.debug
		l.reload(ctx, nil, sets)
	case 'a':
		objects, err := manifests.Read(l.apply...)
		if err != nil {
			l.say("not applied: %s", firstLine(err.Error(), err))
			return false
		}
		objects = append(l.pending, objects...)
		l.pending = nil
		for _, note := range l.applyObjects(ctx, objects) {
			l.say("%s", note)
		}
	case 'k':
		l.shell(k)
		select {
		case k.resume <- struct{}{}:
		case <-ctx.Done():
		}
	case 'q':
		return true
	case '\n', '\r', ' ':
	default:
		fmt.Fprintln(l.stderr, keyHelp)
	}
	return false
}

// shell runs the user's shell with the kubeconfig of the cluster. The operator keeps running;
// its output is shown afterwards.
func (l *loop) shell(k *keyboard) {
	path := os.Getenv("SHELL")
	if path == "" {
		path = "sh"
	}
	l.say("a shell with KUBECONFIG=%s; exit it to return", l.kubeconfig)
	l.out.close()
	k.restore()
	cmd := exec.Command(path)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+l.kubeconfig)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	k.raw()
	l.out.open(os.Stderr)
	if err != nil {
		l.say("the shell ended: %v", err)
		return
	}
	l.say("the shell ended")
}

var failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// test runs the tests of the operator's module. The go command skips packages that did not
// change.
func (l *loop) test(ctx context.Context) {
	var out bytes.Buffer
	cmd := goCommand(ctx, l.build.packages[0], "test", "./...")
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	switch failed := failedTest.FindAllStringSubmatch(out.String(), -1); {
	case ctx.Err() != nil:
	case err == nil:
		l.say("the tests pass")
	case len(failed) == 0:
		l.say("the tests fail: %s", firstProblem(out.String(), err))
	default:
		var names []string
		for _, f := range failed {
			names = append(names, f[1])
		}
		l.say("the tests fail: %s", strings.Join(names, ", "))
	}
}
