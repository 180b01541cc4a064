package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/logs"
)

func events(t *testing.T, c *gopftest.Cluster) (messages []string) {
	for _, e := range c.List(t, "v1/events", "default") {
		kind, _ := e.Object["type"].(string)
		reason, _ := e.Object["reason"].(string)
		message, _ := e.Object["message"].(string)
		messages = append(messages, kind+" "+reason+": "+message)
	}
	slices.Sort(messages)
	return messages
}

func TestHandlersPostEventsAboutTheirObjects(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		op := gopf.New()
		gopf.For[*Example](op, resource).OnCreate("c", func(_ context.Context, ch *gopf.Change[*Example]) error {
			ch.Event(gopf.Normal, "Made", "It is made.")
			ch.Event(gopf.Warning, "Odd", "But it is odd.")
			ch.Event("Strange", "Odd", "And strange.")
			return nil
		})
		gopftest.Start(t, op, c)
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(time.Minute)
		want := []string{"Normal Made: It is made.", "Strange Odd: And strange.", "Warning Odd: But it is odd."}
		if got := events(t, c); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestAnObjectThatCannotBeDecodedGetsAWarningEvent(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		gopf.For[*Example](op, resource).OnCreate("c", diary.handler("c"))
		gopftest.Start(t, op, c)
		settle()
		odd := example("x", "a")
		odd.Object["spec"] = map[string]any{"field": int64(42)}
		c.Create(t, odd)
		time.Sleep(10 * time.Second)
		got := events(t, c)
		if len(got) != 1 || len(diary.all()) != 0 {
			t.Errorf("events %q, calls %q", got, diary.all())
		}
	})
}

// The handler is due again after each backoff, and at once on any change. An ERROR line
// for each of that would hide everything else.
func TestAnObjectThatCannotBeDecodedIsLoggedOncePerState(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var log lines
		op := gopf.New()
		op.Settings.Execution.DefaultBackoff = 10 * time.Second
		x := gopf.For[*Example](op, resource)
		x.OnCreate("make", func(context.Context, *gopf.Change[*Example]) error {
			return gopf.RetryAfter(time.Minute, errors.New("not yet"))
		})
		x.Timer("look", time.Minute, func(context.Context, *gopf.Tick[*Example]) error { return nil })
		op.Resource(resource).OnCreate("other", func(context.Context, *gopf.Change[gopf.Unstructured]) error {
			return gopf.RetryAfter(time.Minute, errors.New("not yet")) // it keeps writing its record
		})
		gopftest.Start(t, op, c, gopf.Log(slog.New(logs.New(&log, logs.Options{Format: logs.Full, Level: slog.LevelDebug}))))
		settle()
		const text = "is not called, because the object does not fit its type"
		check := func(when string, want int) {
			t.Helper()
			time.Sleep(10 * time.Minute)
			for _, handler := range []string{"'make'", "'look'"} {
				if got := log.count("ERROR", handler, text); got != want {
					t.Errorf("%s: %s has %d lines at ERROR, want %d", when, handler, got, want)
				}
			}
		}
		set := func(values map[string]any) { c.Patch(t, resource, "default", "x", values) }
		odd := example("x", "a")
		odd.Object["spec"] = map[string]any{"field": int64(42)}
		c.Create(t, odd)
		check("created", 1)
		if got := log.count("DEBUG", text); got < 20 {
			t.Errorf("%d repetitions at DEBUG", got)
		}
		set(map[string]any{"status": map[string]any{"x": "y"}})
		check("status changed", 1)
		set(map[string]any{"spec": map[string]any{"field": int64(43)}})
		check("another number", 2)
		set(map[string]any{"spec": map[string]any{"field": "a"}})
		check("fixed", 2)
		set(map[string]any{"spec": map[string]any{"field": int64(43)}})
		check("broken again", 3)
	})
}

func TestAFailureIsPostedWithItsErrorText(t *testing.T) {
	for level, want := range map[slog.Level][]string{slog.LevelError: {"Error Broken: out of order"}, slog.LevelError + 1: nil} {
		bubble(t, func(t *testing.T, c *gopftest.Cluster) {
			op := gopf.New()
			op.Settings.Posting.Level = level
			gopf.For[*Example](op, resource).OnCreate("c", func(_ context.Context, ch *gopf.Change[*Example]) error {
				ch.Event(gopf.Warning, "Odd", "This is below the level.")
				ch.Event(gopf.Failure, "Broken", "%v", errors.New("out of order"))
				return nil
			})
			gopftest.Start(t, op, c)
			settle()
			c.Create(t, example("x", "a"))
			time.Sleep(time.Minute)
			if got := events(t, c); !slices.Equal(got, want) {
				t.Errorf("from level %s on: got %q, want %q", level, got, want)
			}
		})
	}
}

func TestPostedEventsNameTheOperatorFromTheSettings(t *testing.T) {
	type names struct{ component, instance, prefix string }
	cases := map[string]struct {
		set  func(*gopf.PostingSettings)
		want names
	}{
		"by default": {func(*gopf.PostingSettings) {}, names{"kopf", "dev", "kopf-event-"}},
		"with names": {func(s *gopf.PostingSettings) {
			s.ReportingComponent, s.ReportingInstance, s.EventNamePrefix = "databases", "pod-7", "db-"
		}, names{"databases", "pod-7", "db-"}},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				op := gopf.New()
				test.set(&op.Settings.Posting)
				gopf.For[*Example](op, resource).OnCreate("c", func(_ context.Context, ch *gopf.Change[*Example]) error {
					ch.Event(gopf.Normal, "Made", "It is made.")
					return nil
				})
				gopftest.Start(t, op, c)
				settle()
				c.Create(t, example("x", "a"))
				time.Sleep(time.Minute)
				all := c.List(t, "v1/events", "default")
				if len(all) != 1 {
					t.Fatalf("got %d events, want 1", len(all))
				}
				component, _ := all[0].Object["reportingComponent"].(string)
				instance, _ := all[0].Object["reportingInstance"].(string)
				if component != test.want.component || instance != test.want.instance || !strings.HasPrefix(all[0].GetName(), test.want.prefix) {
					t.Errorf("the event %s is of %s, instance %s; want %+v", all[0].GetName(), component, instance, test.want)
				}
			})
		})
	}
}

// The API server may limit the events of each namespace, and a tenant may reach that limit.
func TestRefusedEventsDoNotSlowDownOtherRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gopftest.NewCluster(t, resource, "v1/secrets")
		op := gopf.New()
		gopf.For[*Example](op, resource).OnCreate("c", func(ctx context.Context, ch *gopf.Change[*Example]) error {
			ch.Event(gopf.Normal, "Made", "It is %s.", ch.Object.Name)
			if ch.Object.Name == "noisy" {
				return nil
			}
			return ch.API.Get(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "slow"}})
		})
		c.Fault(gopftest.Requests("create", "events"), gopftest.Fail(http.StatusTooManyRequests))
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		c.Create(t, example("noisy", "a"))
		time.Sleep(10 * time.Minute)
		slow := c.Fault(gopftest.Requests("get", "secrets"), gopftest.Hang())
		defer slow.Stop()
		for i := range 16 {
			c.Create(t, example(fmt.Sprint("busy-", i), "a"))
		}
		time.Sleep(time.Second)
		if slow.Struck() != 16 {
			t.Errorf("%d of 16 requests are in flight", slow.Struck())
		}
	})
}
