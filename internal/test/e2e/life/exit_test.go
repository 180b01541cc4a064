package life_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

// everything is an operator with all there is.
func everything(s *space, d *diary) *gopf.Operator {
	op := peer(d, "ours", 0)
	op.Settings.Election.Enabled = true
	op.Settings.Election.Name, op.Settings.Election.Namespace, op.Settings.Election.Identity = "lease", s.Name, "ours"
	op.Settings.Election.Duration, op.Settings.Election.RenewDeadline, op.Settings.Election.RetryPeriod = 6*time.Second, 4*time.Second, time.Second
	op.Settings.Health.Address = kit.FreeAddress(s.T)
	op.Settings.Health.Liveness = "http://" + kit.FreeAddress(s.T) + "/healthz"
	op.Settings.Metrics.Address = op.Settings.Health.Address
	op.Settings.Posting.Loggers = true
	op.OnProbe("probe", func(context.Context, *gopf.Activity) (any, error) { return 1, nil })
	x := gopf.For[*Example](op, examples)
	gopf.Index(x, "names", func(_ context.Context, s *gopf.Subject[*Example]) (map[string]string, error) {
		return map[string]string{s.Object.Name: s.Object.Spec.Field}, nil
	})
	x.OnEvent("event", func(context.Context, *gopf.WatchEvent[*Example]) error { return nil })
	x.OnCreate("later", func(context.Context, *gopf.Change[*Example]) error {
		return gopf.RetryAfter(time.Hour, errors.New("not yet"))
	})
	x.Daemon("daemon", func(ctx context.Context, c *gopf.Daemon[*Example]) error {
		c.Event(gopf.Normal, "Runs", "the daemon runs")
		<-ctx.Done()
		return nil
	}, gopf.Optional())
	x.Timer("timer", 200*time.Millisecond, func(context.Context, *gopf.Tick[*Example]) error { return nil }, gopf.Optional())
	op.OnCleanup("cleanup", func(context.Context, *gopf.Activity) error { d.Add("cleanup"); return nil })
	return op
}

// leavesNothing makes sure that no more goroutines are there than before, as soon
// as all is settled.
func leavesNothing(t *testing.T, before int) {
	t.Helper()
	var now int
	for deadline := time.Now().Add(kit.Patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if now = runtime.NumGoroutine(); now <= before {
			return
		}
	}
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	t.Errorf("%d goroutines are left, there were %d:\n%s", now, before, stacks)
}

// TestNothingIsLeftOfAnOperator stops operators in all phases of their lives. It
// runs alone: it counts goroutines.
func TestNothingIsLeftOfAnOperator(t *testing.T) {
	block := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for _, c := range []struct {
		when    string
		prepare func(s *space, op *gopf.Operator, way *line)
		until   func(s *space, op *gopf.Operator, o *operator, d *diary, way *line)
	}{
		{when: "during startup", prepare: func(_ *space, op *gopf.Operator, _ *line) {
			op.OnStartup("endless", func(ctx context.Context, _ *gopf.Activity) error { return block(ctx) })
		}, until: func(_ *space, _ *gopf.Operator, o *operator, _ *diary, _ *line) {
			o.Log.WaitFor(o.t, "Activity 'endless' is invoked.")
		}},
		{when: "during login", prepare: func(_ *space, op *gopf.Operator, _ *line) {
			op.OnLogin("endless", func(ctx context.Context, _ *gopf.Activity) (*gopf.Login, error) { return nil, block(ctx) })
		}, until: func(_ *space, _ *gopf.Operator, o *operator, _ *diary, _ *line) {
			o.Log.WaitFor(o.t, "Activity 'endless' is invoked.")
		}},
		{when: "during the first discovery", prepare: func(_ *space, _ *gopf.Operator, way *line) { way.hush() },
			until: func(_ *space, _ *gopf.Operator, o *operator, _ *diary, _ *line) {
				o.Log.WaitFor(o.t, "Initial authentication has finished.")
				time.Sleep(200 * time.Millisecond)
			}},
		{when: "at work", until: func(s *space, op *gopf.Operator, o *operator, d *diary, _ *line) {
			o.serving()
			s.Create(examples, "x", spec("a"))
			d.WaitFor(o.t, "ours create a")
			waitCode(o.t, op.Settings.Health.Liveness, 200)
			waitCode(o.t, "http://"+op.Settings.Metrics.Address+"/metrics", 200)
			s.waitRecords(peerings, "default", "replicas of "+s.Name+"/lease")
		}},
		{when: "while paused", until: func(s *space, op *gopf.Operator, o *operator, d *diary, _ *line) {
			o.serving()
			s.Create(examples, "x", spec("a"))
			d.WaitFor(o.t, "ours create a")
			s.Patch(peerings, "default", fields{"status": fields{"human": record(100, time.Minute)}})
			op.Pause("for a test")
			o.Log.WaitFor(o.t, "Pausing operations")
		}},
		{when: "while standing by", prepare: func(s *space, _ *gopf.Operator, _ *line) {
			now := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
			s.Create(leases, "lease", fields{"spec": fields{
				"holderIdentity": "another", "leaseDurationSeconds": 3600, "acquireTime": now, "renewTime": now, "leaseTransitions": 0,
			}})
		}, until: func(s *space, _ *gopf.Operator, o *operator, _ *diary, _ *line) {
			o.serving()
			s.Create(examples, "x", spec("a"))
			o.Log.WaitFor(o.t, "Another replica leads; this one waits.")
		}},
		{when: "with the API gone", until: func(s *space, _ *gopf.Operator, o *operator, d *diary, way *line) {
			o.serving()
			s.Create(examples, "x", spec("a"))
			d.WaitFor(o.t, "ours create a")
			way.cut()
			o.Log.WaitFor(o.t, "Cannot list or watch the resource")
		}},
	} {
		t.Run(c.when, func(t *testing.T) {
			s, d, way := newSpace(t), &diary{}, newLine()
			s.Create(peerings, "default", nil)
			op := everything(s, d)
			if c.prepare != nil {
				c.prepare(s, op, way)
			}
			config := gopf.Cluster(way.config())
			if c.when == "during login" {
				config = gopf.Cluster(nil)
			}
			before := runtime.NumGoroutine()
			o := s.start(op, config)
			c.until(s, op, o, d, way)
			began := time.Now()
			o.Stop()
			if took := time.Since(began); took > kit.Patience/2 {
				t.Errorf("it took %s to stop", took)
			}
			way.mend()
			leavesNothing(t, before)
			if !d.Has("cleanup") {
				t.Error("there was no cleanup")
			}
		})
	}
}

func TestTheExitGoesStepByStep(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	s.Create(peerings, "default", nil)
	op := peer(d, "ours", 0)
	op.Settings.Election.Enabled = true
	op.Settings.Election.Name, op.Settings.Election.Namespace, op.Settings.Election.Identity = "lease", s.Name, "ours"
	op.Settings.Queueing.ExitTimeout = kit.Patience // a loaded machine sleeps longer
	x := gopf.For[*Example](op, examples)
	handled := make(chan struct{})
	x.OnUpdate("slow", func(ctx context.Context, _ *gopf.Change[*Example]) error {
		d.Add("the handler begins")
		time.Sleep(time.Second)
		d.Add("the handler ends, cancelled: %v", ctx.Err() != nil)
		close(handled)
		return nil
	})
	x.Daemon("daemon", func(ctx context.Context, c *gopf.Daemon[*Example]) error {
		<-c.Stopping()
		<-handled
		time.Sleep(500 * time.Millisecond)
		d.Add("the daemon ends, cancelled: %v", ctx.Err() != nil)
		return nil
	}, gopf.StopGrace(kit.Patience), gopf.Optional())
	op.OnCleanup("cleanup", func(ctx context.Context, a *gopf.Activity) error {
		d.Add("cleanup, records: %q, holder: %q", s.records(peerings, "default"), s.holder("lease"))
		_, err := namesAt(ctx, a.API.RESTConfig(), s.Name)
		return err
	})
	o := s.start(op).serving()
	s.Create(examples, "x", spec("a"))
	d.WaitFor(t, "ours create a")
	s.waitHandled("x", "a")
	s.waitRecords(peerings, "default", "replicas of "+s.Name+"/lease")
	s.Patch(examples, "x", spec("b"))
	d.WaitFor(t, "the handler begins")
	o.Stop()
	d.Check(t, "ours create a", "ours update b", "the handler begins", "the handler ends, cancelled: false",
		"the daemon ends, cancelled: false", `cleanup, records: [], holder: ""`)
	if got := s.handled("x"); got != "b" {
		t.Errorf("the object was handled as %q, want what the handler has done to be recorded", got)
	}
}

// namesAt lists objects with a client of the user's own.
func namesAt(ctx context.Context, config *rest.Config, namespace string) (names []string, err error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	gvr := schema.GroupVersionResource{Group: "life.gopf.dev", Version: "v1", Resource: "examples"}
	list, err := client.Resource(gvr).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, item := range list.Items {
		names = append(names, item.GetName())
	}
	return names, nil
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		operator string
		signals  int
		code     int
		says     string
		calls    string
	}{
		{"broken startup", 0, 1, "no disk", "startup; cleanup, API: false"},
		{"broken cleanup", 1, 1, "no broom", "startup; cleanup, API: true"},
		{"long cleanup", 2, 130, "second signal", "startup; cleanup, API: true"},
	} {
		t.Run(c.operator, func(t *testing.T) {
			t.Parallel()
			s, to := newSpace(t), newCalls(t)
			p := s.launch(c.operator, to)
			if c.signals > 0 {
				p.Log.WaitFor(t, "Client is configured.")
				p.Signal(syscall.SIGTERM)
			}
			if c.signals > 1 {
				kit.Await(t, "cleanup begins", func() bool { return len(to.all()) == 2 })
				time.Sleep(time.Second) // it would be taken for an echo of the first one
				p.Signal(syscall.SIGINT)
			}
			if code := p.Wait(); code != c.code {
				t.Errorf("got the exit code %d, want %d", code, c.code)
			}
			if len(p.Log.With(c.says)) == 0 {
				t.Errorf("nothing says %q", c.says)
			}
			if got := strings.Join(to.all(), "; "); got != c.calls {
				t.Errorf("got %q, want %q", got, c.calls)
			}
		})
	}
}
