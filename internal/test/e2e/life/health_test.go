package life_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

// watchful notes everything that a page says which is not fine, until the test
// asks for it.
func watchful(t *testing.T, url string) (end func() []string) {
	var bad []string
	stop := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
			}
			if code, body := fetch(url); code != 200 {
				bad = append(bad, fmt.Sprintf("%d %s", code, body))
			}
		}
	})
	end = sync.OnceValue(func() []string { close(stop); watching.Wait(); return bad })
	t.Cleanup(func() { end() })
	return end
}

// unsteady is an operator whose line to the cluster may become bad, and which
// notices that soon.
func unsteady(t *testing.T) (s *space, d *diary, way *line, health string) {
	s, d, way, health = newSpace(t), &diary{}, newLine(), kit.FreeAddress(t)
	op := newOperator()
	op.Settings.Health.Address = health
	op.Settings.Watching.InactivityTimeout = 2 * time.Second
	op.Settings.Networking.RequestTimeout = 2 * time.Second
	d.handles(op, "ours")
	s.start(op, gopf.Cluster(way.config())).serving()
	s.Create(examples, "x", spec("a"))
	d.WaitFor(t, "ours create a")
	s.waitHandled("x", "a")
	waitCode(t, "http://"+health+"/readyz", 200)
	return s, d, way, health
}

func TestAStalledStreamIsNotReadyAndRecovers(t *testing.T) {
	t.Parallel()
	s, d, way, health := unsteady(t)
	lively := watchful(t, "http://"+health+"/livez")
	way.hush()
	began := time.Now()
	waitPage(t, "http://"+health+"/readyz", 503, "examples.life.gopf.dev")
	// The setting is 2 s. Its default is 70 s.
	if took := time.Since(began); took > 40*time.Second {
		t.Errorf("it took %s to notice", took)
	}
	s.Patch(examples, "x", spec("b"))
	way.mend()
	waitCode(t, "http://"+health+"/readyz", 200)
	d.WaitFor(t, "ours update b")
	if bad := lively(); len(bad) > 0 {
		t.Errorf("it was to be restarted: %q", bad)
	}
}

func TestAnOutageOfTheAPINeverAsksForARestart(t *testing.T) {
	t.Parallel()
	s, d, way, health := unsteady(t)
	lively := watchful(t, "http://"+health+"/livez")
	way.cut()
	waitPage(t, "http://"+health+"/readyz", 503, "could not be watched", "the line is broken")
	s.Patch(examples, "x", spec("b"))
	time.Sleep(4 * time.Second)
	way.mend()
	waitCode(t, "http://"+health+"/readyz", 200)
	d.WaitFor(t, "ours update b")
	s.waitHandled("x", "b")
	if bad := lively(); len(bad) > 0 {
		t.Errorf("it was to be restarted: %q", bad)
	}
}

func TestHealthTellsTheWholeLifeOfAnOperator(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	health, probes := kit.FreeAddress(t), kit.FreeAddress(t)
	op := newOperator()
	op.Settings.Health.Address = health
	op.Settings.Health.Liveness = "http://" + probes + "/healthz"
	op.Settings.Metrics.Address = health
	loggedIn := make(chan struct{})
	op.OnLogin("login", func(ctx context.Context, _ *gopf.Activity) (*gopf.Login, error) {
		select {
		case <-loggedIn:
		case <-ctx.Done():
		}
		return &gopf.Login{Config: cluster}, nil
	})
	var sick atomic.Bool
	var asked atomic.Int32
	op.OnProbe("now", func(context.Context, *gopf.Activity) (any, error) {
		asked.Add(1)
		return map[string]any{"n": 1}, nil
	})
	op.OnProbe("nothing", func(context.Context, *gopf.Activity) (any, error) { return nil, nil })
	op.OnProbe("sick", func(_ context.Context, a *gopf.Activity) (any, error) {
		if sick.Load() {
			return nil, gopf.Permanent(errors.New("no disk"))
		}
		return a.API.RESTConfig().Host != "", nil
	})
	d.handles(op, "ours")
	o := s.start(op, gopf.Cluster(nil))
	readyz, livez, liveness := "http://"+health+"/readyz", "http://"+health+"/livez", op.Settings.Health.Liveness

	waitPage(t, readyz, 503, "still starting: logging in")
	if code, body := fetch(livez); code != 200 {
		t.Errorf("it is not alive while it logs in: %d %s", code, body)
	}
	if code, body := fetch(liveness); code != 503 || asked.Load() > 0 {
		t.Errorf("probes before the start: %d %s", code, body)
	}
	close(loggedIn)
	o.serving()
	waitCode(t, readyz, 200)
	probed := time.Now()
	var results map[string]any
	if err := json.Unmarshal([]byte(waitCode(t, liveness, 200)), &results); err != nil {
		t.Error(err)
	}
	if fmt.Sprint(results) != "map[now:map[n:1] sick:true]" {
		t.Errorf("the probes say %v", results)
	}
	for range 10 {
		waitCode(t, liveness, 200)
	}
	if n, most := asked.Load(), 1+int32(time.Since(probed)/(10*time.Second)); n < 1 || n > most {
		t.Errorf("the probes were called %d times, want at most %d: once in 10 s", n, most)
	}
	if code, _ := fetch("http://" + probes + "/other"); code != 404 {
		t.Errorf("another path: %d", code)
	}

	op.Pause("somebody looks at it")
	waitPage(t, readyz, 200, "on purpose: somebody looks at it")
	op.Unpause()
	sick.Store(true)
	if body := waitCode(t, liveness, 500); !strings.Contains(body, "no disk") { // when the former results are 10 s old
		t.Errorf("with a sick probe:\n%s", body)
	}
	counts := scrape(t, health)
	for id, outcome := range map[string]string{"login": "succeeded", "now": "succeeded", "sick": "failed"} {
		if series := fmt.Sprintf(`gopf_handler_runs_total{handler=%q,outcome=%q,resource=""}`, id, outcome); counts[series] < 1 {
			t.Errorf("%s is %v", series, counts[series])
		}
	}
	o.Stop()
	if code, _ := fetch(livez); code != 0 {
		t.Errorf("somebody answers after the end: %d", code)
	}
}

func TestWhatCannotBeServedIsAWarningUnlessStrict(t *testing.T) {
	for strict, code := range map[bool]int{false: 200, true: 503} {
		t.Run(fmt.Sprint(strict), func(t *testing.T) {
			t.Parallel()
			s, d, health := newSpace(t), &diary{}, kit.FreeAddress(t)
			op := newOperator()
			op.Settings.Health.Address, op.Settings.Health.Strict = health, strict
			d.handles(op, "ours")
			gopf.For[*Example](op, "life.gopf.dev/v1/unicorns").OnCreate("create", func(context.Context, *gopf.Change[*Example]) error { return nil })
			s.start(op).serving()
			body := waitCode(t, "http://"+health+"/readyz", code)
			if !strings.Contains(body, "unicorns") {
				t.Errorf("it says:\n%s", body)
			}
			waitCode(t, "http://"+health+"/livez", 200)
		})
	}
}

func TestATakenAddressIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	s, d, health := newSpace(t), &diary{}, kit.FreeAddress(t)
	one, two := newOperator(), newOperator()
	for _, op := range []*gopf.Operator{one, two} {
		op.Settings.Health.Address = health
		d.handles(op, "ours")
		op.OnCleanup("cleanup", func(context.Context, *gopf.Activity) error { d.Add("cleanup"); return nil })
	}
	s.start(one).serving()
	if err := s.start(two).Wait(); err == nil || !strings.Contains(err.Error(), "another program or operator is listening there") {
		t.Errorf("got %v", err)
	}
	d.Check(t, "cleanup")
}
