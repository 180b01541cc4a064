// Command bench measures the cost of operators written with Gopf, with controller-runtime
// and, if it is available, with Kopf. See README.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"gopf.dev/gopf/bench/proc"
	"gopf.dev/gopf/bench/report"
)

func main() {
	mode := flag.String("mode", "bench", "how much to measure: quick, bench, full or median")
	only := flag.String("only", "", "measurements, like B1,B3; default: all")
	with := flag.String("with", "", "programs to measure, like gopf,status,typed,unstructured,kopf,bare; default: all")
	sizes := flag.String("n", "", "numbers of objects, like 1000,5000; default: those of the mode")
	rounds := flag.Int("rounds", 3, "rounds of the mode median")
	out := flag.String("out", "results", "folder for the results")
	profiles := flag.String("profiles", "", "folder for profiles of B1, B2, B3, B7, B12, B13 and B14; default: no profiles")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *mode, plan{only: *only, with: *with, sizes: *sizes, rounds: *rounds}, *out, *profiles); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, mode string, p plan, out, profiles string) error {
	began := time.Now()
	for _, dir := range []string{out, profiles} { // before anything takes time
		if dir == "" {
			continue
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	folder, err := os.MkdirTemp("", "gopf-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	programs, err := programs(ctx, folder)
	if err != nil {
		return err
	}
	b := &bench{folder: folder, programs: programs, profiles: profiles, seeds: map[seed]string{}, results: describe(mode)}
	load, err := proc.Load()
	if err != nil {
		return err
	}
	time.Sleep(time.Second)
	idle, err := proc.Load()
	if err != nil {
		return err
	}
	b.results.Busy = 1 - (idle.Idle-load.Idle)/(idle.Total-load.Total)
	failure := b.measure(ctx, mode, p)
	end, err := proc.Load()
	if err != nil {
		return err
	}
	b.results.Stolen = (end.Stolen - idle.Stolen) / (end.Total - idle.Total)
	b.results.Judge()
	if err := b.results.Write(out); err != nil {
		return err
	}
	fmt.Println(b.results.Table())
	log.Printf("done in %v", time.Since(began).Round(time.Second))
	return failure
}

// describe returns empty results with a description of the environment.
func describe(mode string) *report.Results {
	r := &report.Results{
		Mode: mode, Date: time.Now().Format(time.DateOnly), Machine: proc.Machine(), Cores: runtime.NumCPU(), Go: runtime.Version(), Commit: "unknown",
	}
	if commit, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output(); err == nil {
		r.Commit = strings.TrimSpace(string(commit))
	}
	if version, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", "sigs.k8s.io/controller-runtime").Output(); err == nil {
		r.Runtime = strings.TrimSpace(string(version))
	}
	return r
}
