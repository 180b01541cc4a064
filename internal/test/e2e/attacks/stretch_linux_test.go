package attacks_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

func TestLimitsGrowOnlyWithOtherProcesses(t *testing.T) {
	for _, test := range []struct{ share, want float64 }{
		{-0.5, 1}, {0, 1}, {quiet, 1}, {0.5, 2}, {0.75, 4}, {0.9, 10}, {0.999, maxStretch}, {1, maxStretch}, {3, maxStretch},
	} {
		if got := stretch(test.share); got < test.want-0.001 || got > test.want+0.001 {
			t.Errorf("a share of %v: got %v, want %v", test.share, got, test.want)
		}
	}
}

// An operator that is busy, or the test itself, must not prolong its own limit.
func TestTheLoadOfOwnProcessesIsMeasuredAsOwn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	other := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); _ = other.Wait() }() // it was killed
	own := startWatch(os.Getpid(), other.Process.Pid)
	foreign := startWatch(os.Getpid())
	for time.Since(own.began) < time.Second { // busy, too
	}
	excused := processTime(own.own) - own.usage - (processTime(foreign.own) - foreign.usage)
	if excused <= 0 {
		t.Error("the load of the other process is not measured")
	}
	if used := machineTime() - own.used; used < excused || used > time.Duration(runtime.NumCPU())*2*time.Since(own.began) {
		t.Errorf("the machine used %v, and one of its processes %v", used, excused)
	}
}

func TestTheProcessOfAPortIsFound(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if got := listener("https://" + l.Addr().String()); got != os.Getpid() {
		t.Errorf("got process %d, want %d", got, os.Getpid())
	}
	if listener(cluster.Config.Host) == 0 {
		t.Error("the control plane is not found")
	}
}
