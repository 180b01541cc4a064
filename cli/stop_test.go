package cli

import (
	"bytes"
	"context"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf"
)

// buffer is a writer for several goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// run is a started operator that takes some time to stop.
type run struct {
	signals chan os.Signal
	exits   chan int // exit codes of the process
	stderr  buffer
	code    chan int
	stopped time.Duration // time from the start to the end
}

// begin starts it. The bubble checks that no goroutine is left.
func begin(t *testing.T, slowness time.Duration, settings func(*gopf.Settings), args ...string) *run {
	t.Helper()
	r := &run{signals: make(chan os.Signal, 2), exits: make(chan int, 10), code: make(chan int, 1)}
	op := gopf.New()
	settings(&op.Settings)
	op.OnStartup("slow", func(ctx context.Context, _ *gopf.Activity) error {
		<-ctx.Done()
		time.Sleep(slowness) // virtual time
		return nil
	})
	p := process{signals: r.signals, exit: func(code int) { r.exits <- code }}
	begun := time.Now()
	go func() {
		code := p.main(op, append([]string{"run", "-A", "--log-format=plain"}, args...), &r.stderr, &r.stderr)
		r.stopped = time.Since(begun)
		r.code <- code
	}()
	synctest.Wait()
	return r
}

func (r *run) wants(t *testing.T, code int, exits []int, stopped time.Duration) {
	t.Helper()
	if got := <-r.code; got != code {
		t.Errorf("got exit code %d, want %d: %s", got, code, r.stderr.String())
	}
	if r.stopped != stopped {
		t.Errorf("it stopped after %v, want %v", r.stopped, stopped)
	}
	close(r.exits)
	for _, want := range exits {
		if got := <-r.exits; got != want {
			t.Errorf("the process was ended with %d, want %d", got, want)
		}
	}
	if got, open := <-r.exits; open {
		t.Errorf("the process was ended with %d", got)
	}
}

func noSettings(*gopf.Settings) {}

func TestASignalStopsTheOperator(t *testing.T) {
	for name, signal := range map[string]os.Signal{"SIGINT": os.Interrupt, "SIGTERM": syscall.SIGTERM} {
		synctest.Test(t, func(t *testing.T) {
			r := begin(t, time.Second, noSettings)
			r.signals <- signal
			r.wants(t, ok, nil, time.Second)
			if want := "Signal " + name + " is received. Operator is stopping.\n"; !strings.HasPrefix(r.stderr.String(), want) {
				t.Errorf("got %q, want %q first", r.stderr.String(), want)
			}
		})
	}
}

func TestASecondSignalEndsTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := begin(t, 20*time.Second, noSettings)
		r.signals <- os.Interrupt
		synctest.Wait()
		r.signals <- os.Interrupt // sent to the process, and then to its group
		synctest.Wait()
		if len(r.exits) != 0 {
			t.Error("a repetition of the first signal ended the process")
		}
		time.Sleep(time.Second)
		r.signals <- syscall.SIGTERM
		synctest.Wait()
		if len(r.exits) != 1 {
			t.Error("the second signal did nothing")
		}
		r.wants(t, ok, []int{interrupted}, 20*time.Second)
		if want := "The second signal stopped the process immediately.\n"; strings.Count(r.stderr.String(), want) != 1 {
			t.Errorf("got %q", r.stderr.String())
		}
	})
}

func TestAShutdownThatTakesTooLongEndsTheProcess(t *testing.T) {
	const late = "The operator did not stop in time; exiting with unfinished work."
	limit := func(d time.Duration) func(*gopf.Settings) {
		return func(s *gopf.Settings) { s.Process.UltimateExitingTimeout = d }
	}
	cases := map[string]struct {
		settings func(*gopf.Settings)
		slowness time.Duration
		exits    []int
	}{
		"within the default":   {noSettings, 24 * time.Second, nil},
		"later":                {noSettings, 26 * time.Second, []int{overdue}},
		"later than its limit": {limit(time.Second), 2 * time.Second, []int{overdue}},
		"without a limit":      {limit(0), time.Hour, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := begin(t, c.slowness, c.settings)
				r.signals <- syscall.SIGTERM
				r.wants(t, ok, c.exits, c.slowness)
				if got := strings.Contains(r.stderr.String(), late); got != (len(c.exits) > 0) {
					t.Errorf("got %q", r.stderr.String())
				}
			})
		})
	}
}

func TestRunNeverEndsTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		op := gopf.New()
		op.Settings.Process.UltimateExitingTimeout = time.Second
		op.OnStartup("slow", func(context.Context, *gopf.Activity) error {
			time.Sleep(time.Hour) // virtual time
			return nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var stderr buffer
		if code := Run(ctx, op, []string{"run", "-A", "-q"}, &stderr, &stderr); code != ok {
			t.Errorf("got exit code %d: %s", code, stderr.String())
		}
		if stderr.String() != "" {
			t.Errorf("got %q", stderr.String())
		}
	})
}

func TestAnOperatorThatEndsByItselfLeavesNoGoroutine(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", "/none")
	synctest.Test(t, func(t *testing.T) {
		var stderr buffer
		p := process{signals: make(chan os.Signal), exit: func(code int) { t.Errorf("the process was ended with %d", code) }}
		if code := p.main(gopf.New(), []string{"run", "-A"}, &stderr, &stderr); code != failed {
			t.Errorf("got exit code %d: %s", code, stderr.String())
		}
	})
}
