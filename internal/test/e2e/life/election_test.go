package life_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/test/e2e/kit"
)

// storm changes objects all the time, and notes when what was handled was
// recorded on them.
type storm struct {
	s        *space
	mu       sync.Mutex
	written  map[string]int              // the newest number of each object
	recorded map[string]map[string]int64 // when each number was seen to be recorded, in µs
	end      func()
}

const stormObjects = 6

func (s *space) storm() *storm {
	s.T.Helper()
	st := &storm{s: s, written: map[string]int{}, recorded: map[string]map[string]int64{}}
	for i := range stormObjects {
		name := fmt.Sprint("x", i)
		s.Create(examples, name, spec("0"))
		st.recorded[name] = map[string]int64{}
	}
	ctx, cancel := context.WithCancel(context.Background())
	watch, err := s.Of(examples).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		s.T.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for e := range watch.ResultChan() {
			if obj, ok := e.Object.(*unstructured.Unstructured); ok {
				st.see(obj)
			}
		}
	})
	running.Go(func() {
		for n := 1; ctx.Err() == nil; n++ {
			name := fmt.Sprint("x", n%stormObjects)
			change := fmt.Appendf(nil, `{"spec":{"field":"%d"}}`, n)
			if _, err := s.Of(examples).Patch(ctx, name, types.MergePatchType, change, metav1.PatchOptions{}); err == nil {
				st.mu.Lock()
				st.written[name] = n
				st.mu.Unlock()
			}
			time.Sleep(30 * time.Millisecond)
		}
	})
	st.end = sync.OnceFunc(func() { cancel(); watch.Stop(); running.Wait() })
	s.T.Cleanup(st.end)
	return st
}

func (st *storm) see(obj *unstructured.Unstructured) {
	var base struct{ Spec struct{ Field string } }
	if json.Unmarshal([]byte(obj.GetAnnotations()[lastHandled]), &base) != nil {
		return
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if seen := st.recorded[obj.GetName()]; seen[base.Spec.Field] == 0 {
		seen[base.Spec.Field] = time.Now().UnixMicro()
	}
}

// call is one of a handler: who, of what, in which state, since when in µs.
type call struct {
	who, name, field string
	began            int64
}

func parseCalls(t *testing.T, lines []string) (all []call) {
	t.Helper()
	for _, line := range lines {
		var c call
		if _, err := fmt.Sscan(line, &c.who, &c.name, &c.field, &c.began); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, c)
	}
	return all
}

// check ends the storm, waits until everything is handled, and makes sure that
// nothing was handled again after it was recorded. It returns how much was
// handled twice.
func (st *storm) check(to calls) (twice int) {
	t := st.s.T
	t.Helper()
	time.Sleep(500 * time.Millisecond)
	st.mu.Lock()
	last := map[string]string{}
	for name, n := range st.written {
		last[name] = fmt.Sprint(n)
	}
	st.mu.Unlock()
	for name := range last {
		kit.Await(t, name+" is handled to the end", func() bool {
			obj := st.s.Get(examples, name)
			field, _, _ := unstructured.NestedString(obj.Object, "spec", "field")
			return st.s.handled(name) == field
		})
	}
	counts := map[string]int{}
	for _, c := range parseCalls(t, to.all()) {
		counts[c.name+" "+c.field]++
		if at := st.recorded[c.name][c.field]; at != 0 && c.began > at {
			t.Errorf("%s handled %s again as %s, %d µs after that was recorded", c.who, c.name, c.field, c.began-at)
		}
	}
	for _, n := range counts {
		if n > 1 {
			twice++
		}
	}
	return twice
}

// workedBy tells who has made calls, in the order of their first ones.
func workedBy(t *testing.T, to calls) (who []string) {
	for _, c := range parseCalls(t, to.all()) {
		if !slices.Contains(who, c.who) {
			who = append(who, c.who)
		}
	}
	return who
}

func TestTheNextReplicaTakesOver(t *testing.T) {
	for _, c := range []struct {
		signal   os.Signal
		duration time.Duration
		within   time.Duration // after the end of the process, on a loaded machine
	}{
		{syscall.SIGTERM, 30 * time.Second, 20 * time.Second},
		{syscall.SIGKILL, 6 * time.Second, 40 * time.Second},
	} {
		t.Run(fmt.Sprint("after ", c.signal), func(t *testing.T) {
			t.Parallel()
			s, to := newSpace(t), newCalls(t)
			replica := func(name string) *kit.Process {
				return s.launch("replica", to, identityVariable+"="+name, durationVariable+"="+c.duration.String())
			}
			one := replica("one")
			one.Log.WaitFor(t, "This replica leads.")
			two := replica("two")
			two.Log.WaitFor(t, "Another replica leads; this one waits.", "holder=one")
			st := s.storm()
			kit.Await(t, "the first one works", func() bool { return len(to.all()) > 2*stormObjects })
			one.Signal(c.signal)
			one.Wait()
			ended := time.Now()
			kit.Await(t, "the second one works", func() bool { return len(workedBy(t, to)) == 2 })
			took := time.Since(ended)
			t.Logf("the second replica worked %s after the end of the first one", took)
			if took > c.within {
				t.Errorf("it took %s, want %s at the most", took, c.within)
			}
			kit.Await(t, "the second one works on", func() bool {
				return strings.Count(strings.Join(to.all(), "\n"), "two ") > stormObjects
			})
			if got := s.holder("replicas"); got != "two" {
				t.Errorf("the lease is held by %q", got)
			}
			st.end()
			twice := st.check(to)
			switch {
			case c.signal == syscall.SIGTERM && twice > 0:
				t.Errorf("%d changes were handled twice, although everything was recorded at the stop", twice)
			case twice > stormObjects:
				t.Errorf("%d changes were handled twice; want those at most that were being handled", twice)
			}
			if len(one.Log.With("DATA RACE"))+len(two.Log.With("DATA RACE")) > 0 {
				t.Error("there are data races")
			}
			two.Signal(syscall.SIGTERM)
			if code := two.Wait(); code != 0 {
				t.Errorf("got the exit code %d", code)
			}
			if got := s.holder("replicas"); got != "" {
				t.Errorf("the lease is still held by %q", got)
			}
		})
	}
}

func TestAReplicaThatIsCutOffGivesUpAndComesBack(t *testing.T) {
	t.Parallel()
	s, d, way := newSpace(t), &diary{}, newLine()
	op := newOperator()
	op.Settings.Election.Enabled = true
	op.Settings.Election.Name, op.Settings.Election.Namespace, op.Settings.Election.Identity = "lease", s.Name, "one"
	op.Settings.Election.Duration, op.Settings.Election.RenewDeadline, op.Settings.Election.RetryPeriod = 3*time.Second, 2*time.Second, 500*time.Millisecond
	x := d.handles(op, "one")
	cancelled := make(chan error, 1)
	x.OnUpdate("long", longHandler(d, cancelled))
	health := kit.FreeAddress(t)
	op.Settings.Health.Address = health
	o := s.start(op, withCluster(way.config())).serving()
	s.Create(examples, "x", spec("a"))
	d.WaitFor(t, "one create a")
	s.waitHandled("x", "a")
	s.Patch(examples, "x", spec("long"))
	d.WaitFor(t, "it takes long")
	way.cut()
	select {
	case err := <-cancelled:
		if !strings.Contains(err.Error(), "stopping") {
			t.Errorf("the handler was cancelled because of %v", err)
		}
	case <-time.After(kit.Patience):
		t.Fatal("the handler runs on without the lease")
	}
	o.Log.WaitFor(t, "The lease is lost; this replica stops its work.")
	waitPage(t, "http://"+health+"/readyz", 200, "is a standby")
	s.Patch(examples, "x", spec("b"))
	way.mend()
	d.WaitFor(t, "one update b")
	s.waitHandled("x", "b")
}

// invokedBefore reports whether the log has the call before a moment. A process can be
// stopped after it decided to call a handler, and before the first line of the handler.
func invokedBefore(t *testing.T, p *kit.Process, moment time.Time, c call) bool {
	t.Helper()
	for _, line := range p.Log.With("/" + c.name + "] Handler 'create/" + c.field + "' is invoked.") {
		text, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "["), "]")
		at, err := time.ParseInLocation("2006-01-02 15:04:05,000", text, time.Local)
		if err != nil {
			t.Fatalf("the log line %q has no time: %v", line, err)
		}
		if at.Before(moment) {
			return true
		}
	}
	return false
}

func TestALeaderThatWasStoppedCallsNothingWhenItContinues(t *testing.T) {
	t.Parallel()
	s, to := newSpace(t), newCalls(t)
	replica := func(name string) *kit.Process {
		return s.launch("steps", to, identityVariable+"="+name, durationVariable+"=5s")
	}
	madeBy := func(who string) int { return strings.Count(strings.Join(to.all(), "\n"), who+" ") }
	one := replica("one")
	one.Log.WaitFor(t, "This replica leads.")
	two := replica("two")
	two.Log.WaitFor(t, "Another replica leads; this one waits.", "holder=one")
	for i := range 10 { // each is in the middle of something when the process is stopped
		s.Create(examples, fmt.Sprint("x", i), spec("a"))
	}
	kit.Await(t, "the first one works", func() bool { return madeBy("one") > 50 })
	stopped := time.Now()
	one.Signal(syscall.SIGSTOP)
	kit.Await(t, "the second one works", func() bool { return madeBy("two") > 10 })
	continued := time.Now().UnixMicro()
	one.Signal(syscall.SIGCONT)
	one.Log.WaitFor(t, "The lease is lost; this replica stops its work.")
	time.Sleep(500 * time.Millisecond)
	for _, c := range parseCalls(t, to.all()) {
		switch logged := c.who != "one" || invokedBefore(t, one, stopped, c); {
		case logged:
		case c.began < stopped.UnixMicro():
			t.Errorf("the log lacks the call of %s of %s", c.field, c.name)
		case c.began > continued:
			t.Errorf("the former leader called %s of %s, %d µs after it continued", c.field, c.name, c.began-continued)
		}
	}
	for _, p := range []*kit.Process{two, one} {
		p.Signal(syscall.SIGTERM)
		if code := p.Wait(); code != 0 {
			t.Errorf("got the exit code %d", code)
		}
	}
}
