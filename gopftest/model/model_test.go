// Package model_test runs random operators with random users and faults on the in-memory
// cluster, in virtual time, and checks invariants that hold for all of them.
//
// Everything derives from a seed. A failing seed prints its declarations and its history.
// GOPF_MODEL_SEED=7 runs only one seed, GOPF_MODEL_SEEDS=1000 runs more seeds than by
// default, GOPF_MODEL_FROM=300 starts with another seed, and GOPF_MODEL_LOG=1 adds the log of
// the operators.
package model_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// seeds is the default number of seeds of all tests in this package together.
const seeds = 300

// forSeeds runs a test with its share of the seeds, in percent.
func forSeeds(t *testing.T, share int, test func(t *testing.T, r *rand.Rand) *world) {
	from, n := number(t, "GOPF_MODEL_FROM", 0), number(t, "GOPF_MODEL_SEEDS", seeds)*share/100
	if os.Getenv("GOPF_MODEL_SEED") != "" {
		from, n = number(t, "GOPF_MODEL_SEED", 0), 1
	}
	for seed := from; seed < from+n; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := test(t, rand.New(rand.NewPCG(uint64(seed), 1)))
				if wrong := w.oracle.problems; len(wrong) > 0 {
					t.Errorf("seed %d:\n%s\n\n%s\n\n%s", seed, strings.Join(wrong[:min(10, len(wrong))], "\n"), w.declaration, w.history)
				}
			})
		})
	}
}

func number(t *testing.T, variable string, fallback int) int {
	text := os.Getenv(variable)
	if text == "" {
		return fallback
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// TestNothingIsLostOrRepeated runs one operator, which is killed, stopped and paused at
// random.
func TestNothingIsLostOrRepeated(t *testing.T) {
	forSeeds(t, 60, func(t *testing.T, r *rand.Rand) *world {
		th := pick(r, themes)
		w := newWorld(t, randomDeclaration(r, th), randomEnvironment(r))
		if chance(r, 30) {
			w.idle = 2 * time.Hour
		}
		plan := randomPlan(r, th, newUsers(r, th, []string{"x0", "x1", "x2"}[:pick(r, th.objects)]...))
		w.supervise(1)
		quiet(time.Second)
		w.perform(plan)
		w.finish()
		return w
	})
}

// finish makes the checks that take long: idle hours, and a restart.
func (w *world) finish() {
	if w.isEnding() {
		w.end()
		return // it was aborted
	}
	quiet(20 * time.Minute) // timers have seen the last state
	since := time.Now()
	w.oracle.idle(w, w.idle)
	w.oracle.timersRan(w, since)
	w.history.add("-- restart")
	w.end()
	before := w.snapshot()
	w.oracle.strict = true
	p := w.start(w.declaration, 0)
	w.rest()
	w.oracle.restarted(w, p, before)
	w.oracle.settled(w)
	w.end()
}
