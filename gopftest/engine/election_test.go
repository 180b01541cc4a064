package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf"
	"gopf.dev/gopf/client"
	"gopf.dev/gopf/gopftest"
)

// replica is one of several replicas of an operator.
func replica(diary *calls, name string) (*gopf.Operator, *gopf.Resource[*Example]) {
	op := gopf.New()
	op.Settings.Election.Enabled = true
	op.Settings.Election.Name = "example"
	op.Settings.Election.Identity = name
	op.Settings.Peering.Standalone = true
	x := gopf.For[*Example](op, resource)
	x.OnCreate("create", diary.handler(name))
	x.OnUpdate("update", diary.handler(name))
	return op, x
}

// line is a connection to the cluster that a test can cut.
type line struct {
	cut   atomic.Bool
	inner http.RoundTripper
}

func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.cut.Load() {
		return nil, errors.New("the line is cut")
	}
	resp, err := l.inner.RoundTrip(r)
	if err == nil {
		resp.Body = cuttable{resp.Body, l}
	}
	return resp, err
}

type cuttable struct {
	io.ReadCloser
	line *line
}

func (c cuttable) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if c.line.cut.Load() {
		return 0, errors.New("the line is cut")
	}
	return n, err
}

func (l *line) config(c *gopftest.Cluster) *rest.Config {
	config := c.RESTConfig()
	l.inner = c.Transport()
	config.Transport = l
	return config
}

func TestOneReplicaLeadsAndTheNextTakesOverImmediately(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		one, _ := replica(&diary, "one")
		two, x := replica(&diary, "two")
		seen := gopf.Index(x, "names", func(_ context.Context, s *gopf.Subject[*Example]) (map[string]string, error) {
			return map[string]string{s.Object.GetName(): s.Object.Spec.Field}, nil
		})
		stop := gopftest.Start(t, one, c)
		settle()
		gopftest.Start(t, two, c)
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if got, want := diary.all(), []string{"one create a"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if v, _ := seen.One("x"); v != "a" {
			t.Errorf("the index of the standby has %q; it must be filled before the takeover", v)
		}
		stop()
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		time.Sleep(time.Second)
		synctest.Wait()
		if got, want := diary.all(), []string{"one create a", "two update b"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestAReplicaThatLosesTheLeaseWritesNothingAnymore(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		cut := &line{}
		one, x := replica(&diary, "one")
		var ended time.Time
		var late error
		x.OnUpdate("long", func(ctx context.Context, ch *gopf.Change[*Example]) error {
			if ch.Object.Spec.Field != "b" {
				return nil
			}
			<-ctx.Done()
			ended = time.Now()
			// A handler that ignores its context and uses a separate client.
			client, err := rest.HTTPClientFor(ch.API.RESTConfig())
			if err != nil {
				return err
			}
			resp, err := client.Post(ch.API.RESTConfig().Host+"/api/v1/namespaces", "application/json", strings.NewReader(`{"metadata":{"name":"mischief"}}`))
			if late = err; err == nil {
				resp.Body.Close()
			}
			return nil
		})
		two, _ := replica(&diary, "two")
		gopftest.Start(t, one, c, gopf.Cluster(cut.config(c)))
		settle()
		gopftest.Start(t, two, c)
		settle()
		c.Create(t, example("x", "a"))
		settle()
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		settle()
		began := time.Now()
		cut.cut.Store(true)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if d := ended.Sub(began); d <= 0 || d > 10*time.Second {
			t.Errorf("the handler was canceled after %s, want within the deadline", d)
		}
		if late == nil || !strings.Contains(late.Error(), "lease") {
			t.Errorf("the write of the former leader: got %v, want an error", late)
		}
		cut.cut.Store(false)
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "c"}})
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []string{"one create a", "one update b", "two update c"}
		got := diary.all()
		if got = slices.DeleteFunc(got, func(s string) bool { return s == "two update b" }); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestAReelectedReplicaWorksAgain(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		cut := &line{}
		one, _ := replica(&diary, "one")
		gopftest.Start(t, one, c, gopf.Cluster(cut.config(c)))
		settle()
		c.Create(t, example("x", "a"))
		settle()
		cut.cut.Store(true)
		time.Sleep(5 * time.Minute)
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		cut.cut.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got, want := diary.all(), []string{"one create a", "one update b"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestAReelectedReplicaActsLikeANewProcess(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		cut := &line{}
		one, x := replica(&diary, "one")
		x.OnResume("resume", diary.handler("resume"))
		x.OnEvent("event", func(_ context.Context, e *gopf.WatchEvent[*Example]) error {
			diary.add("event %q %s", e.Type, e.Object.Name)
			return nil
		})
		c.Create(t, example("gone", "a"))
		c.Create(t, example("x", "a"))
		gopftest.Start(t, one, c, gopf.Cluster(cut.config(c)))
		settle()
		cut.cut.Store(true)
		time.Sleep(5 * time.Minute)
		c.Delete(t, resource, "default", "gone")
		before := len(diary.all())
		cut.cut.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got, want := diary.all()[before:], []string{`event "" x`, "resume resume a"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestAnElectionWithoutANameIsAnErrorAtStartup(t *testing.T) {
	args := os.Args
	defer func() { os.Args = args }()
	os.Args = []string{"/usr/bin/---"} // the lease is named after the program
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op, _ := replica(&diary, "one")
		op.Settings.Election.Name = ""
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err := op.Run(ctx, gopf.Cluster(c.RESTConfig()), gopf.Log(quiet()))
		if err == nil || !strings.Contains(err.Error(), "requires a namespace, a name") || ctx.Err() != nil {
			t.Errorf("got the error %v, want at once that there is no name", err)
		}
	})
}

func TestAReplicaThatLostTheLeaseStopsDespiteARunningHandler(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		cut := &line{}
		op, x := replica(&diary, "one")
		release := make(chan struct{})
		x.OnCreate("stuck", func(context.Context, *gopf.Change[*Example]) error { <-release; return nil })
		stop := gopftest.Start(t, op, c, gopf.Cluster(cut.config(c)))
		settle()
		c.Create(t, example("x", "a"))
		settle()
		cut.cut.Store(true)
		time.Sleep(time.Minute)
		cut.cut.Store(false)
		time.Sleep(time.Minute)
		began := time.Now()
		stop()
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("stopping took %s", took)
		}
		close(release)
	})
}

func TestALeaderThatPausesForAPeerKeepsItsLease(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		meet(t, c)
		var diary calls
		one, _ := replica(&diary, "one")
		two, _ := replica(&diary, "two")
		for _, op := range []*gopf.Operator{one, two} {
			op.Settings.Peering.Standalone = false
			op.Settings.Peering.Identity = op.Settings.Election.Identity
			op.Settings.Peering.Priority = 1
		}
		two.Settings.Peering.Priority = 0 // with equal priorities, both would pause
		gopftest.Start(t, one, c)
		settle()
		stopTwo := gopftest.Start(t, two, c)
		settle()
		stopPeer := gopftest.Start(t, peer(&diary, "peer", 100), c)
		time.Sleep(10 * time.Second)
		c.Create(t, example("x", "a"))
		time.Sleep(time.Minute)
		stopPeer()
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		time.Sleep(10 * time.Second)
		synctest.Wait()
		want := []string{"peer create a", "one update b"}
		if got := diary.all(); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		stopTwo()
	})
}

func TestLosingTheLeaseDuringShutdownCancelsHandlers(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		cut := &line{}
		op, x := replica(&diary, "one")
		op.Settings.Queueing.ExitTimeout = 10 * time.Minute
		began := time.Now()
		x.OnCreate("long", func(ctx context.Context, _ *gopf.Change[*Example]) error {
			<-ctx.Done()
			diary.add("handler cancelled: %v", time.Since(began) < 15*time.Second)
			return ctx.Err()
		})
		x.Daemon("daemon", func(ctx context.Context, d *gopf.Daemon[*Example]) error {
			<-ctx.Done()
			diary.add("daemon cancelled: %v", time.Since(began) < 15*time.Second)
			return nil
		}, gopf.StopGrace(10*time.Minute), gopf.Optional())
		stop := gopftest.Start(t, op, c, gopf.Cluster(cut.config(c)))
		settle()
		c.Create(t, example("x", "a"))
		settle()
		began = time.Now()
		cut.cut.Store(true)
		stop()
		got := diary.all()[1:]
		slices.Sort(got)
		if want := []string{"daemon cancelled: true", "handler cancelled: true"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestAReplicaCanBeElectedWhileAnIndexFunctionCallsTheAPI(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		one, _ := replica(&diary, "one")
		two, x := replica(&diary, "two")
		gopf.Index(x, "names", func(ctx context.Context, s *gopf.Subject[*Example]) (map[string]string, error) {
			time.Sleep(10 * time.Second)
			other, err := client.Get[*Example](ctx, s.API, s.Object.GetName())
			if err != nil {
				return nil, err
			}
			return map[string]string{other.GetName(): other.Spec.Field}, nil
		})
		stop := gopftest.Start(t, one, c)
		settle()
		gopftest.Start(t, two, c)
		time.Sleep(time.Minute)
		c.Create(t, example("x", "a"))
		settle()
		stop()
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		time.Sleep(time.Minute)
		synctest.Wait()
		if got, want := diary.all(), []string{"one create a", "two update b"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestAReelectedReplicaWaitsForItsIndices(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		cut := &line{}
		one, x := replica(&diary, "one")
		names := gopf.Index(x, "names", func(ctx context.Context, s *gopf.Subject[*Example]) (map[string]string, error) {
			return map[string]string{s.Object.GetName(): s.Object.Spec.Field}, nil
		})
		x.OnResume("resume", func(_ context.Context, ch *gopf.Change[*Example]) error {
			diary.add("resume sees %d", names.Len())
			return nil
		})
		gopftest.Start(t, one, c, gopf.Cluster(cut.config(c)))
		for _, name := range []string{"a", "b", "c"} {
			c.Create(t, example(name, "a"))
		}
		time.Sleep(time.Minute)
		cut.cut.Store(true)
		time.Sleep(30 * time.Second)
		cut.cut.Store(false)
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		got := diary.all()[3:]
		if want := []string{"resume sees 3", "resume sees 3", "resume sees 3"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestANewLeaderResumesObjectsThatItOnlyIndexed(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		one, _ := replica(&diary, "one")
		two, x := replica(&diary, "two")
		gopf.Index(x, "names", func(_ context.Context, s *gopf.Subject[*Example]) (map[string]string, error) {
			return map[string]string{s.Object.GetName(): s.Object.Spec.Field}, nil
		})
		x.OnResume("resume", diary.handler("two"))
		c.Create(t, example("before", "a"))
		stop := gopftest.Start(t, one, c)
		settle()
		gopftest.Start(t, two, c)
		settle()
		c.Create(t, example("meanwhile", "b"))
		settle()
		stop()
		time.Sleep(time.Minute)
		synctest.Wait()
		got := diary.all()
		slices.Sort(got)
		if want := []string{"one create a", "one create b", "two resume a", "two resume b"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestAReelectedReplicaDoesNotWaitForIndicesWithoutResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gopftest.NewCluster(t)
		var diary calls
		cut := &line{}
		one, x := replica(&diary, "one")
		gopf.Index(x, "names", func(_ context.Context, s *gopf.Subject[*Example]) (map[string]string, error) {
			return map[string]string{s.Object.GetName(): s.Object.Spec.Field}, nil
		})
		one.Settings.Scanning.Disabled = true
		log := &lines{}
		gopftest.Start(t, one, c, gopf.Cluster(cut.config(c)), gopf.Log(log.logger()))
		time.Sleep(time.Minute)
		cut.cut.Store(true)
		time.Sleep(30 * time.Second)
		cut.cut.Store(false)
		time.Sleep(3 * time.Minute)
		if !log.has("The lease is lost") || log.has("some indices are not filled") {
			t.Error("the lease was not lost, or the replica waits for indices")
		}
	})
}

func TestABusyLeaderKeepsItsLease(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var log lines
		var handled atomic.Int32
		op := gopf.New()
		s := &op.Settings
		s.Election.Enabled, s.Election.Identity, s.Election.Name = true, "ours", "busy"
		x := gopf.For[*Example](op, resource)
		x.OnCreate("make", func(ctx context.Context, ch *gopf.Change[*Example]) error {
			for range 5 {
				me := &Example{}
				me.Name, me.Namespace = ch.Object.Name, ch.Object.Namespace
				if err := ch.API.Get(ctx, me); err != nil {
					return err
				}
			}
			handled.Add(1)
			return nil
		})
		const objects = 500
		for i := range objects {
			c.Create(t, example(fmt.Sprint("o", i), "a"))
		}
		c.Fault(gopftest.Requests("get", "kopfexamples"), gopftest.Hold(time.Second)) // well below the timeout of 30 s
		gopftest.Start(t, op, c, gopf.Log(log.logger()))
		time.Sleep(10 * time.Minute)
		if log.has("lease is lost") {
			t.Error("the lease was lost, although the API responds to every request within a second")
		}
		if n := handled.Load(); n != objects {
			t.Errorf("%d objects are handled, want %d", n, objects)
		}
	})
}
