// Command mutate measures which mistakes the tests of a package detect. It makes one small
// change at a time in the code (a mutant), runs the tests, and reports the mutants that
// survive because no test fails.
//
//	go run ./internal/dev/mutate [flags] TARGET...
//
// A target is a package, plus the packages whose tests must detect its mutants, separated
// by "+". The default is its own tests. A package of a nested module is written as
// FOLDER:PACKAGE:
//
//	./diff
//	./internal/execute+./internal/execute+./internal/vectors
//	.+.+gopftest:./engine
//
// The code on disk never changes: the compiler reads the mutants from an overlay.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"time"
)

// options are the flags.
type options struct {
	sample   int           // mutants per target; 0 means all
	seed     uint64        // of the sample
	parallel int           // mutants tested at the same time
	budget   time.Duration // for the whole run; 0 means no limit
	timeout  time.Duration // for the tests of one mutant
	least    float64       // percent that must be killed in each target
	only     string        // a regular expression of the mutants to test; all if empty
}

func main() {
	var o options
	flag.IntVar(&o.sample, "sample", 0, "number of mutants to test per target; 0 means all")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the random sample")
	flag.IntVar(&o.parallel, "parallel", max(1, runtime.NumCPU()/2), "number of mutants to test in parallel")
	flag.DurationVar(&o.budget, "budget", 0, "time limit of the whole run; 0 means no limit")
	flag.DurationVar(&o.timeout, "timeout", time.Minute, "time limit of the tests of one mutant")
	flag.Float64Var(&o.least, "least", 0, "percentage of mutants that must be killed in each target")
	flag.StringVar(&o.only, "only", "", "a regular expression: test only mutants whose lines in the report match, such as former survivors")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if o.budget > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.budget)
		defer cancel()
	}
	passed := true
	for _, text := range flag.Args() {
		if ctx.Err() != nil {
			fmt.Printf("%s: was not tested in time\n", text)
			continue
		}
		score, err := measure(ctx, parseTarget(text), o)
		if err != nil && ctx.Err() != nil {
			fmt.Printf("%s: was not tested in time\n", text)
			continue
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", text, err)
			os.Exit(1)
		}
		fmt.Println(score)
		passed = passed && score.rate() >= o.least
	}
	if !passed {
		fmt.Printf("Less than %g %% were killed.\n", o.least)
		os.Exit(1)
	}
}

// target is a package, and the tests that must detect its mutants.
type target struct {
	pkg   string
	tests []testPackage
}

// testPackage is a package with tests, in the module of a folder.
type testPackage struct{ folder, pkg string }

func parseTarget(text string) target {
	parts := strings.Split(text, "+")
	t := target{pkg: parts[0]}
	if len(parts) == 1 {
		parts = append(parts, parts[0])
	}
	for _, p := range parts[1:] {
		folder, pkg, nested := strings.Cut(p, ":")
		if !nested {
			folder, pkg = ".", p
		}
		t.tests = append(t.tests, testPackage{folder, pkg})
	}
	return t
}

// score is the result for one target.
type score struct {
	pkg                      string
	killed, survived, unmade int // unmade mutants do not compile
	left                     int // not tested within the budget
}

// rate returns the percentage of killed mutants, or 100 if none were tested.
func (s score) rate() float64 {
	if s.killed+s.survived == 0 {
		return 100
	}
	return 100 * float64(s.killed) / float64(s.killed+s.survived)
}

func (s score) String() string {
	text := fmt.Sprintf("%s: killed %d of %d mutants (%.1f %%)", s.pkg, s.killed, s.killed+s.survived, s.rate())
	if s.left > 0 {
		text += fmt.Sprintf("; %d were not tested in time", s.left)
	}
	return text
}
