//go:build unix

package call

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gopf.dev/gopf/serve/spec"
)

// script returns the options of a shell script.
func script(text string, change ...func(*spec.Call)) Options {
	c := spec.Call{Exec: []string{"/bin/sh", "-c", text}}
	for _, fn := range change {
		fn(&c)
	}
	return Options{Call: c}
}

func request(log *slog.Logger) *Request {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Request{
		Input:     Input{V: Version, Handler: "h", Reason: "create", Retry: 2, Object: map[string]any{"spec": map[string]any{"size": 1}}},
		Namespace: "ns", Name: "obj", Log: log,
	}
}

func TestAProgramGetsTheDocumentAndReturnsOne(t *testing.T) {
	e := NewExec(script(`read line; case $line in *'"handler":"h"'*'"size":1'*) echo '{"result": 5, "labels": {"a": "b", "c": null}}';; *) exit 1;; esac`))
	out, err := e.Call(t.Context(), request(nil))
	if err != nil || out.Result != int64(5) || *out.Labels["a"] != "b" || out.Labels["c"] != nil {
		t.Errorf("got %+v, %v", out, err)
	}
}

func TestExitCodesDecideAboutRetries(t *testing.T) {
	for code, want := range map[int]struct{ permanent, decided bool }{1: {}, 75: {false, true}, 65: {true, true}} {
		e := NewExec(script(fmt.Sprintf("echo first >&2; echo why >&2; exit %d", code)))
		_, err := e.Call(t.Context(), request(nil))
		var decided *Error
		got := errors.As(err, &decided)
		if err == nil || got != want.decided || got && decided.Permanent != want.permanent || !strings.HasSuffix(err.Error(), fmt.Sprintf("exit code %d: why", code)) {
			t.Errorf("%d: got %v", code, err)
		}
	}
}

func TestTheEnvironmentHasOnlyWhatIsListed(t *testing.T) {
	o := script(`printf '{"result": "%s"}' "$(env | sort | grep -v '^_=\|^PWD=\|^SHLVL=\|^OLDPWD=' | tr '\n' ' ')"`, func(c *spec.Call) { c.Env = []string{"GIVEN", "SET=x"} })
	o.Environ = func() []string { return []string{"PATH=/bin:/usr/bin", "HOME=/h", "GIVEN=1", "SECRET=2"} }
	out, err := NewExec(o).Call(t.Context(), request(nil))
	const want = "GIVEN=1 GOPF_HANDLER=h GOPF_NAME=obj GOPF_NAMESPACE=ns GOPF_REASON=create GOPF_RETRY=2 HOME=/h PATH=/bin:/usr/bin SET=x "
	if err != nil || out.Result != want {
		t.Errorf("got %q, %v", out.Result, err)
	}
}

func TestBadProgramsFailWithinTheirLimits(t *testing.T) {
	short := func(c *spec.Call) { c.CallTimeout = 300 * time.Millisecond }
	for name, c := range map[string]struct {
		options Options
		want    string
	}{
		"hangs":                 {script("sleep 1000", short), "the time limit of the call is over"},
		"hangs without reading": {script("exec <&-; exec sleep 1000", short), "the time limit of the call is over"},
		"prints without end":    {script("yes 0123456789"), "the output has more than 4194304 bytes"},
		"prints 1 GiB":          {script("head -c 1073741824 /dev/zero"), "the output has more than 4194304 bytes"},
		"prints to stderr":      {script("head -c 20000000 /dev/zero >&2; exit 3"), "exit code 3"},
		"dies by a signal":      {script("kill -SEGV $$"), "signal: segmentation fault"},
		"responds with HTML":    {script("echo '<html>'"), `it begins with "<html>"`},
		"responds with half":    {script(`printf '{"status": {"a"'`), "the output is not a JSON object"},
		"responds with a list":  {script("echo '[]'"), "the output is not a JSON object"},
		"misspells a key":       {script(`echo '{"statsu": {}}'`), `unknown key "statsu" (did you mean "status"?)`},
		"has two outcomes":      {script(`echo '{"permanent": "a", "wait": {}}'`), "more than one of"},
		"does not exist":        {Options{Call: spec.Call{Exec: []string{"/no/such/program"}}}, "start the program"},
		"has a bad delay":       {script(`echo '{"wait": {"after": "soon"}}'`), `"soon" is not a duration`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewExec(c.options).Call(t.Context(), request(nil))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// alive reports whether a process exists and is no zombie.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

func readPID(t *testing.T, file string) (pid int) {
	t.Helper()
	waitFor(t, "the file of the process", func() bool {
		text, _ := os.ReadFile(file)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return pid > 0
	})
	return pid
}

func TestChildrenOfAProgramDieWithIt(t *testing.T) {
	for name, rest := range map[string]string{"exits": "exit 0", "hangs": "sleep 1000", "fails": "exit 1"} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "pid")
			o := script("sleep 1000 & echo $! > "+file+"; "+rest, func(c *spec.Call) { c.CallTimeout = 500 * time.Millisecond })
			if name == "exits" || name == "fails" {
				o.Call.CallTimeout = time.Minute
			}
			_, _ = NewExec(o).Call(t.Context(), request(nil))
			pid := readPID(t, file)
			waitFor(t, "the end of the child", func() bool { return !alive(pid) })
		})
	}
}

func TestAProgramThatIgnoresTheSignalIsKilled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	o := script("trap '' TERM; echo $$ > "+file+"; while :; do sleep 1; done", func(c *spec.Call) { c.CallTimeout = 200 * time.Millisecond })
	if _, err := NewExec(o).Call(t.Context(), request(nil)); !errors.Is(err, errCallTimeout) {
		t.Errorf("got %v", err)
	}
	if pid := readPID(t, file); alive(pid) {
		t.Error("the program lives")
	}
}

func TestCancellationEndsAProgram(t *testing.T) {
	cause := errors.New("the object is deleted")
	ctx, cancel := context.WithCancelCause(t.Context())
	file := filepath.Join(t.TempDir(), "pid")
	go func() {
		readPID(t, file)
		cancel(cause)
	}()
	_, err := NewExec(script("echo $$ > "+file+"; exec sleep 1000")).Call(ctx, request(nil))
	if !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

func TestProcessesAreLimited(t *testing.T) {
	dir := t.TempDir()
	e := NewExec(script(`mkdir "`+dir+`/lock" || exit 9; sleep 0.05; rmdir "`+dir+`/lock"`, func(c *spec.Call) { c.Processes = 1 }))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := e.Call(t.Context(), request(nil)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestLinesOnStderrAreLogged(t *testing.T) {
	var b strings.Builder
	log := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	e := NewExec(script(`echo plain >&2; echo '{"level": "warning", "msg": "low", "free": 3}' >&2`))
	if _, err := e.Call(t.Context(), request(log)); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), "level=INFO msg=plain\nlevel=WARN msg=low free=3\n"; got != want {
		t.Errorf("got %q", got)
	}
}

// slowHandler is a log handler that reports whether it works now.
type slowHandler struct {
	slog.Handler
	working atomic.Int32
}

func (h *slowHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *slowHandler) Handle(context.Context, slog.Record) error {
	h.working.Add(1)
	defer h.working.Add(-1)
	time.Sleep(50 * time.Millisecond)
	return nil
}

func TestNothingIsLoggedAfterACallHasReturned(t *testing.T) {
	const chatty = "echo one >&2; while :; do echo more >&2; done"
	short := func(c *spec.Call) { c.CallTimeout = 200 * time.Millisecond }
	h := &slowHandler{}
	if _, err := NewExec(script(chatty, short)).Call(t.Context(), request(slog.New(h))); !errors.Is(err, errCallTimeout) || h.working.Load() > 0 {
		t.Errorf("an executable: got %v; %d lines are being logged", err, h.working.Load())
	}
	k := NewKept(script(chatty, short))
	defer k.Close()
	if _, err := k.Call(t.Context(), request(slog.New(h))); !errors.Is(err, errCallTimeout) || h.working.Load() > 0 {
		t.Errorf("a kept program: got %v; %d lines are being logged", err, h.working.Load())
	}
}

func TestADaemonRunsUntilItIsStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	file := filepath.Join(t.TempDir(), "pid")
	done := make(chan error, 1)
	go func() {
		_, err := NewDaemon(script("echo $$ > "+file+"; exec sleep 1000")).Call(ctx, request(nil))
		done <- err
	}()
	pid := readPID(t, file)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if alive(pid) {
		t.Error("the program lives")
	}
}
