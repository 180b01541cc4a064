package tests

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/serve"
	"gopf.dev/gopf/serve/spec"
)

const (
	// calm is the time without a change after which a state is the end state.
	calm = 300 * time.Millisecond
	// calming limits the wait for the end state.
	calming = 10 * time.Second
)

// crash runs the steps again with a crash of the operator before and after each of its writes.
// The state at the end must be the same as without a crash. Two runs without a crash show which
// values differ by themselves.
// It ends with the first crash after which the state differs.
func (r *runner) crash(ctx context.Context, op *spec.Operator) (found []string) {
	var states [2]state
	writes := 0
	for i := range states {
		made, found := r.life(ctx, op, gopftest.Crash{}, func(read func() state) []string {
			states[i] = settled(ctx, read)
			return nil
		})
		if len(found) > 0 {
			return found
		}
		writes = max(writes, len(made))
	}
	want := agreed(states[0], states[1])
	crashes := 0
	for n := range 2 * writes {
		at := gopftest.Crash{Write: n/2 + 1, After: n%2 == 1}
		made, failures := r.life(ctx, op, at, func(read func() state) []string { return reached(ctx, want, read) })
		if len(made) < at.Write {
			at = gopftest.Crash{} // the operator made fewer writes in this run
		} else {
			crashes++
		}
		for _, f := range failures {
			where := at.String()
			if at.Write > 0 {
				where = fmt.Sprintf("crash %s (%s)", at, made[at.Write-1])
			}
			found = append(found, where+": "+f)
		}
		if left := 2*writes - n - 1; len(found) > 0 && left > 0 {
			return append(found, fmt.Sprintf("%d more crashes are left out", left))
		}
	}
	r.remark = fmt.Sprintf(" (%d crashes)", crashes)
	return found
}

// life runs the steps once, and then calls end with a function that reads the state of the
// cluster. It returns the writes of the operator until the crash, and the failures.
func (r *runner) life(ctx context.Context, op *spec.Operator, at gopftest.Crash, end func(read func() state) []string) (writes, found []string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	log := &strings.Builder{}
	h := &host{name: r.test.Name, ctx: ctx, out: log}
	scenario := gopftest.Life{
		Cluster: func(t testing.TB) *gopftest.Cluster { return r.cluster(t, op) },
		Operator: func() *gopf.Operator {
			declared, err := serve.New(os.DirFS(r.dir), r.operator(), serve.Dir(r.dir))
			if err != nil {
				h.Error(err)
				return gopf.New()
			}
			declared.Settings.Posting.Enabled = false      // events come in no certain order
			declared.Settings.Election.Enabled = false     // a crashed replica holds its Lease
			declared.Settings.Queueing.ExitTimeout = 0     // a crashed process waits for no handler
			declared.Settings.Networking.ErrorDelays = nil // the cluster of a crashed process never responds
			declared.Settings.Execution.ReportLostEdits = true
			return declared
		},
		Live: func(_ testing.TB, c *gopftest.Cluster) {
			steps := steps{runner: r, cluster: c, host: h, op: op}
			for i := range r.test.Steps {
				steps.step(ctx, &r.test.Steps[i])
			}
			for _, f := range end(func() state { return stateOf(h, c, op) }) {
				h.Error(f)
			}
		},
	}
	found = h.run(func() { writes = scenario.Run(h, at) })
	if len(found) > 0 && r.log.Len() == 0 {
		r.log.WriteString(log.String())
	}
	return writes, found
}

// settled waits until the state does not change, and returns it.
func settled(ctx context.Context, read func() state) state {
	last, since := read(), time.Now()
	for deadline := time.Now().Add(calming); time.Since(since) < calm && time.Now().Before(deadline) && ctx.Err() == nil; {
		pause(ctx)
		if now := read(); !equal(any(last.plain()), any(now.plain())) {
			last, since = now, time.Now()
		}
	}
	return last
}

// pause waits between two reads of the state, or until the context ends.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(calm / 10):
	}
}

// reached waits until the state is as expected and stays so, and returns the differences
// otherwise.
func reached(ctx context.Context, want expected, read func() state) (found []string) {
	since := time.Now()
	for deadline := time.Now().Add(calming); time.Since(since) < calm && ctx.Err() == nil; {
		if found = want.differences(read()); len(found) > 0 {
			if time.Now().After(deadline) {
				return found
			}
			since = time.Now()
		}
		pause(ctx)
	}
	return found
}
