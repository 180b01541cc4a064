//go:build unix

package call

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"gopf.dev/gopf/serve/spec"
)

// cpu returns the CPU time of this process, without its children.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkExec measures the CPU time of a call beyond that of starting a program.
func BenchmarkExec(b *testing.B) {
	e := NewExec(Options{Call: spec.Call{Exec: []string{"true"}}})
	r := request(nil)
	before := cpu(b)
	for b.Loop() {
		if _, err := e.Call(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	calls := cpu(b) - before
	before = cpu(b)
	for range b.N {
		if err := exec.Command("true").Run(); err != nil {
			b.Fatal(err)
		}
	}
	starts := cpu(b) - before
	b.ReportMetric(float64((calls-starts).Microseconds())/float64(b.N), "overhead-µs/op")
}

// BenchmarkKept measures calls of two kept programs.
func BenchmarkKept(b *testing.B) {
	// cat echoes the input, which has the id, and then keys that are unknown.
	k := NewKept(Options{Call: spec.Call{Exec: []string{"cat"}, Keep: true, Processes: 2}})
	defer k.Close()
	b.RunParallel(func(p *testing.PB) {
		r := request(nil)
		for p.Next() {
			if _, err := k.Call(b.Context(), r); err == nil || !strings.Contains(err.Error(), "unknown key") {
				b.Errorf("got %v", err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

// BenchmarkHTTP measures calls of a hook in the same process.
func BenchmarkHTTP(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"status": {"phase": "Ready"}}`)
	}))
	defer server.Close()
	h, err := NewHTTP(Options{Call: spec.Call{HTTP: &spec.HTTP{URL: server.URL}}})
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	b.RunParallel(func(p *testing.PB) {
		r := request(nil)
		for p.Next() {
			if _, err := h.Call(b.Context(), r); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}
