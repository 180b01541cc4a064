package call

import (
	"context"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"gopf.dev/gopf/serve/spec"
)

// Threads count for the process limit of a pod, as programs do.
func TestRunningProgramsOccupyNoThreads(t *testing.T) {
	const n = 60
	dir := t.TempDir()
	threads := func() int {
		text, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		found, _ := strconv.Atoi(regexp.MustCompile(`Threads:\s+(\d+)`).FindStringSubmatch(string(text))[1])
		return found
	}
	ctx, cancel := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	defer calls.Wait()
	defer cancel()
	d := NewDaemon(script(`: >`+dir+`/$GOPF_NAME; exec sleep 1000`, func(c *spec.Call) { c.Processes = 2 * n }))
	before := threads()
	for i := range n {
		calls.Go(func() { _, _ = d.Call(ctx, of("ns", strconv.Itoa(i))) })
	}
	waitFor(t, "all programs", func() bool {
		files, _ := os.ReadDir(dir)
		return len(files) == n
	})
	if more := threads() - before; more > n/2 {
		t.Errorf("%d programs need %d threads", n, more)
	}
}

// A program may exit before the poller waits for it. Busy goroutines make this likely.
func TestTheExitOfAProgramIsNeverMissed(t *testing.T) {
	stop := make(chan struct{})
	var busy, programs sync.WaitGroup
	for range 8 {
		busy.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					runtime.Gosched()
				}
			}
		})
		programs.Go(func() {
			for range 100 {
				p, err := start([]string{"/bin/true"}, nil, "", false)
				if err != nil {
					t.Error(err)
					return
				}
				select {
				case <-p.exited:
				case <-time.After(30 * time.Second):
					t.Error("the exit was missed")
				}
				p.close()
			}
		})
	}
	programs.Wait()
	close(stop)
	busy.Wait()
}
