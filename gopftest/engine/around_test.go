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

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// All types of handlers are called through the functions around them.
func TestAroundSeesEveryTypeOfHandler(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New(gopf.Identity("around.example.com"))
		op.Settings.Admission.Server, op.Settings.Admission.Managed = hooked(c, new(atomic.Int32)), "around.example.com"
		op.OnStartup("start", func(context.Context, *gopf.Activity) error { return nil })
		op.OnCleanup("clean", func(context.Context, *gopf.Activity) error { return nil })
		x := gopf.For[*Example](op, resource)
		x.OnCreate("create", func(_ context.Context, ch *gopf.Change[*Example]) error {
			ch.Sub("sub", func(context.Context, *gopf.Change[*Example]) error { return nil })
			return nil
		})
		x.OnEvent("event", func(context.Context, *gopf.WatchEvent[*Example]) error { return nil })
		x.Daemon("daemon", func(context.Context, *gopf.Daemon[*Example]) error { return nil })
		x.Timer("timer", time.Hour, func(context.Context, *gopf.Tick[*Example]) error { return nil })
		gopf.Collect(x, "index", func(context.Context, *gopf.Subject[*Example]) (int, bool, error) { return 1, true, nil })
		x.Validate("review", func(context.Context, *gopf.Review[*Example]) error { return nil })
		x.Reconcile("children", func(context.Context, *gopf.Reconciliation[*Example]) error { return nil })
		for _, name := range []string{"outer", "inner"} { // after the handlers
			op.Around(func(ctx context.Context, call *gopf.Call, next func(context.Context) error) error {
				object := ""
				if call.Type != "startup" && call.Type != "cleanup" {
					object = fmt.Sprintf(" %s %s/%s", call.Resource.Plural, call.Namespace, call.Name)
				}
				if call.Log == nil || call.Retry != 0 {
					t.Errorf("%s: got %+v", call.Handler, call)
				}
				diary.add("%s %s %s%s", name, call.Type, call.Handler, object)
				return next(ctx)
			})
		}
		runs(t, c, op, func() { c.Create(t, example("x", "a")) })
		seen := map[string]bool{}
		for i, line := range diary.all() {
			seen[line] = true
			if rest, outer := strings.CutPrefix(line, "outer "); outer && !slices.Contains(diary.all()[i:], "inner "+rest) {
				t.Errorf("%q has no inner call after it", line)
			}
		}
		for _, want := range []string{"startup start", "cleanup clean"} {
			if !seen["outer "+want] {
				t.Errorf("%s is missing in %q", want, diary.all())
			}
		}
		for _, want := range []string{"change create", "change create/sub", "event event", "daemon daemon", "timer timer", "index index", "review review", "reconcile children"} {
			if !seen["outer "+want+" kopfexamples default/x"] {
				t.Errorf("%s is missing in %q", want, diary.all())
			}
		}
	})
}

func TestTheErrorOfAroundDecides(t *testing.T) {
	quota := errors.New("the quota is exceeded")
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		var log lines
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.OnCreate("mapped", func(_ context.Context, ch *gopf.Change[*Example]) error {
			diary.add("mapped #%d", ch.Retry)
			if ch.Retry == 0 {
				return fmt.Errorf("create a volume: %w", quota)
			}
			return nil
		})
		x.OnCreate("parts", func(_ context.Context, ch *gopf.Change[*Example]) error {
			ch.Sub("one", diary.failing("one", 1, time.Second))
			return nil
		})
		x.OnCreate("skipped", diary.handler("skipped"))
		x.OnCreate("panics", func(context.Context, *gopf.Change[*Example]) error { panic("oops") }, gopf.ErrorsPermanent())
		op.Around(func(ctx context.Context, call *gopf.Call, next func(context.Context) error) error {
			defer func() { diary.add("after %s", call.Handler) }()
			if call.Handler == "skipped" {
				return nil
			}
			err := next(ctx)
			switch {
			case errors.Is(err, quota):
				return gopf.RetryAfter(10*time.Second, err)
			case err != nil:
				return fmt.Errorf("around: %w", err)
			}
			return nil
		})
		gopftest.Start(t, op, c, gopf.Log(log.logger()))
		c.Create(t, example("x", "a"))
		time.Sleep(15 * time.Second)
		synctest.Wait()
		all := diary.all()
		for line, want := range map[string]int{"mapped #0": 1, "mapped #1": 1, "one create a #0": 1, "one create a #1": 1, "skipped create a": 0, "after panics": 1, "after skipped": 1} {
			n := 0
			for _, l := range all {
				if l == line {
					n++
				}
			}
			if n != want {
				t.Errorf("%q: %d times, want %d; %q", line, n, want, all)
			}
		}
		if !log.has("Handler 'panics' failed with an exception", "oops") || !log.has("around: not yet") || !log.has("Creation is processed: 3 succeeded; 1 failed.") {
			t.Error("the log lacks an error or the summary")
		}
	})
	op := gopf.New()
	op.Around(nil)
	if err := op.Err(); err == nil || !strings.Contains(err.Error(), "Around has no function") {
		t.Errorf("got %v", err)
	}
}

// The login of the handler reaches the operator through the functions around it.
func TestAroundSeesLoginHandlers(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		op.OnLogin("login", func(_ context.Context, a *gopf.Activity) (*gopf.Login, error) {
			if a.Retry == 0 {
				return nil, errors.New("the vault is sealed")
			}
			return &gopf.Login{Config: c.RESTConfig()}, nil
		})
		op.Around(func(ctx context.Context, call *gopf.Call, next func(context.Context) error) error {
			err := next(ctx)
			diary.add("%s %s #%d %v", call.Type, call.Handler, call.Retry, err)
			if err != nil {
				return gopf.RetryAfter(time.Second, err)
			}
			return nil
		})
		gopf.For[*Example](op, resource).OnCreate("create", diary.handler("create"))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- op.Run(ctx, gopf.Log(quiet())) }()
		time.Sleep(2 * time.Second) // without the function, the next attempt is a minute later
		c.Create(t, example("x", "a"))
		settle()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		want := []string{"login login #0 the vault is sealed", "login login #1 <nil>", "create create a", "change create #0 <nil>"}
		if got := diary.all(); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// The test runs in real time, because it sends a request to the liveness endpoint.
func TestAroundSeesProbeHandlers(t *testing.T) {
	c := gopftest.NewCluster(t, resource)
	op := gopf.New()
	op.Settings.Health.Liveness = "http://" + freeAddress(t) + "/healthz"
	op.OnProbe("good", func(context.Context, *gopf.Activity) (any, error) { return "fine", nil })
	op.OnProbe("bad", func(context.Context, *gopf.Activity) (any, error) { return nil, gopf.Permanent(errors.New("no disk")) })
	var diary calls
	op.Around(func(ctx context.Context, call *gopf.Call, next func(context.Context) error) error {
		err := next(ctx)
		diary.add("%s %s %v", call.Type, call.Handler, err)
		return nil // in place of the error of the handler
	})
	gopf.For[*Example](op, resource).OnCreate("create", diary.handler("create"))
	gopftest.Start(t, op, c)
	for end := time.Now().Add(30 * time.Second); status(t, op.Settings.Health.Liveness) != 200; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the operator is not alive; calls %q", diary.all())
		}
	}
	got := diary.all()
	slices.Sort(got)
	if want := []string{"probe bad no disk", "probe good <nil>"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A turn surrounds the calls of its handlers and its writes, and ends after them.
func TestAroundTurnsPassesItsContextToHandlersAndRequests(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		type key struct{}
		op := gopf.New()
		in := func(ctx context.Context) string { return fmt.Sprint(ctx.Value(key{})) }
		for _, name := range []string{"first", "second"} {
			op.AroundTurns(func(ctx context.Context, turn *gopf.Call) (context.Context, func()) {
				if turn.Type != "turn" || turn.Resource.Plural != "kopfexamples" || turn.Namespace != "default" || turn.Name != "x" || turn.UID == "" || turn.Annotation("note") != "" {
					t.Errorf("got %+v", turn)
				}
				diary.add("%s begins in %s", name, in(ctx))
				return context.WithValue(ctx, key{}, name), func() { diary.add("%s ends", name) }
			})
		}
		op.Around(func(ctx context.Context, call *gopf.Call, next func(context.Context) error) error {
			diary.add("call in %s of %q", in(ctx), call.Annotation("note"))
			return next(ctx)
		})
		op.Settings.Networking.Transport = func(next http.RoundTripper) http.RoundTripper {
			return observedTransport{next, func(req *http.Request) {
				if req.Method == http.MethodPatch {
					diary.add("patch in %s", in(req.Context()))
				}
			}}
		}
		gopf.For[*Example](op, resource).OnCreate("make", func(context.Context, *gopf.Change[*Example]) error { return nil })
		x := example("x", "a")
		x.SetAnnotations(map[string]string{"note": "it is mine"})
		runs(t, c, op, func() { c.Create(t, x) })
		want := []string{"first begins in <nil>", "second begins in first", `call in second of "it is mine"`, "patch in second", "second ends", "first ends"}
		if got := diary.all(); len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
			t.Errorf("got %q", got)
		}
	})
}

// observedTransport calls a function for each request.
type observedTransport struct {
	http.RoundTripper
	seen func(*http.Request)
}

func (o observedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	o.seen(req)
	return o.RoundTripper.RoundTrip(req)
}

func (o observedTransport) WrappedRoundTripper() http.RoundTripper { return o.RoundTripper }
