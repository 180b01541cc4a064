package engine_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// stuck is a connection to the cluster on which lease requests block and ignore their
// contexts, as if the sending part of the process did not run for a while.
type stuck struct {
	inner http.RoundTripper
	until atomic.Pointer[chan struct{}]
}

func (s *stuck) RoundTrip(r *http.Request) (*http.Response, error) {
	if until := s.until.Load(); until != nil && strings.Contains(r.URL.Path, "/leases/") {
		<-*until
	}
	return s.inner.RoundTrip(r)
}

func (s *stuck) config(c *gopftest.Cluster) *rest.Config {
	config := c.RESTConfig()
	s.inner = c.Transport()
	config.Transport = s
	return config
}

// freeze blocks lease requests until the returned function is called.
func (s *stuck) freeze() (thaw func()) {
	until := make(chan struct{})
	s.until.Store(&until)
	return func() { s.until.Store(nil); close(until) }
}

func TestALeaderThatCannotKnowThatItLostTheLeaseCallsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		way := &stuck{}
		one, x := replica(&diary, "one")
		note := func(what string) { diary.add("one %s", what) }
		x.OnEvent("event", func(_ context.Context, e *gopf.WatchEvent[*Example]) error {
			note("event " + e.Object.Name)
			return nil
		})
		x.Timer("timer", time.Second, func(_ context.Context, t *gopf.Tick[*Example]) error {
			note("tick " + t.Object.Name)
			return nil
		}, gopf.Optional())
		x.Daemon("daemon", func(_ context.Context, d *gopf.Daemon[*Example]) error {
			note("daemon " + d.Object.Name)
			<-d.Stopping()
			return nil
		}, gopf.Optional(), gopf.StopGrace(time.Hour))
		x.OnCreate("parent", func(_ context.Context, ch *gopf.Change[*Example]) error {
			if ch.Object.Name != "slow" {
				return nil
			}
			ch.Sub("first", func(context.Context, *gopf.Change[*Example]) error {
				note("first sub-handler")
				time.Sleep(20 * time.Second)
				return nil
			})
			ch.Sub("second", func(context.Context, *gopf.Change[*Example]) error {
				note("second sub-handler")
				return nil
			})
			return nil
		})
		two, _ := replica(&diary, "two")
		gopftest.Start(t, one, c, gopf.Cluster(way.config(c)), gopf.Log(quiet()))
		settle()
		gopftest.Start(t, two, c, gopf.Log(quiet()))
		settle()
		c.Create(t, example("x", "a"))
		settle()
		thaw := way.freeze()
		c.Create(t, example("slow", "a"))
		time.Sleep(14 * time.Second) // longer than the leader may work, shorter than the lease
		if got := diary.all(); !slices.Contains(got, "one first sub-handler") || !slices.Contains(got, "one daemon x") || !slices.Contains(got, "one tick x") {
			t.Fatalf("before the lease expired: %q", got)
		}
		before := len(diary.all())
		c.Create(t, example("late", "a"))
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		time.Sleep(time.Minute)
		thaw()
		time.Sleep(time.Minute)
		synctest.Wait()
		after := diary.all()[before:]
		for _, call := range after {
			if strings.HasPrefix(call, "one") {
				t.Errorf("the former leader made the call %q", call)
			}
		}
		for _, want := range []string{"two create a", "two update b"} {
			if !slices.Contains(after, want) {
				t.Errorf("the next leader did not make the call %q: %q", want, after)
			}
		}
	})
}

func TestWaitingForAWorkerDoesNotCountAsRunning(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var running, most atomic.Int32
		var diary calls
		op := gopf.New()
		op.Settings.Execution.MaxWorkers = 1
		gopf.For[*Example](op, resource).OnCreate("make", func(ctx context.Context, ch *gopf.Change[*Example]) error {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			select {
			case <-time.After(8 * time.Second):
			case <-ctx.Done():
				diary.add("%s is canceled: %v", ch.Object.Name, context.Cause(ctx))
				return ctx.Err()
			}
			diary.add("%s is made", ch.Object.Name)
			return nil
		}, gopf.Timeout(10*time.Second))
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		var want []string
		for i := range 4 {
			c.Create(t, example(fmt.Sprint("o", i), "a"))
			want = append(want, fmt.Sprintf("o%d is made", i))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		got := diary.all()
		slices.Sort(got)
		if !slices.Equal(got, want) || most.Load() != 1 {
			t.Errorf("got %q with %d calls at a time, want %q with one", got, most.Load(), want)
		}
	})
}

func TestWaitingForAWorkerDoesNotCountAgainstTheTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		op.Settings.Execution.MaxWorkers = 1
		x := gopf.For[*Example](op, resource)
		x.OnCreate("make", func(_ context.Context, ch *gopf.Change[*Example]) error {
			if ch.Object.Name == "busy" {
				time.Sleep(time.Minute)
				return nil
			}
			diary.add("%s #%d", ch.Object.Name, ch.Retry)
			return gopf.RetryAfter(4*time.Second, errors.New("not yet"))
		}, gopf.Timeout(2*time.Minute))
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		c.Create(t, example("busy", "a"))
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(10 * time.Minute)
		if n := len(diary.all()); n != 30 {
			t.Errorf("%d attempts, want one every 4 s for 2 minutes, plus the minute of waiting", n)
		}
	})
}
