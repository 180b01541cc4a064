package engine_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/webhook"
)

func TestACreationIsHandledOnceAcrossRestarts(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		declare := func() *gopf.Operator {
			op := gopf.New()
			gopf.For[*Example](op, resource).OnCreate("create_fn", diary.handler("create"))
			return op
		}
		c.Create(t, example("before", "a"))
		stop := gopftest.Start(t, declare(), c)
		settle()
		c.Create(t, example("after", "b"))
		settle()
		if got, want := diary.all(), []string{"create create a", "create create b"}; !slices.Equal(got, want) {
			t.Errorf("calls: got %q, want %q", got, want)
		}
		if got := patches(c); got != 2 {
			t.Errorf("%d patches for two creations without results, want 2", got)
		}
		if got := get(t, c, "after").GetAnnotations()[annotated]; got != "{\"spec\":{\"field\":\"b\"}}\n" {
			t.Errorf("the last-handled configuration is %q", got)
		}
		stop()

		gopftest.Start(t, declare(), c)
		time.Sleep(time.Minute)
		if got := len(diary.all()); got != 2 {
			t.Errorf("handlers were called again after a restart: %q", diary.all())
		}
		if got := patches(c); got != 2 {
			t.Errorf("%d patches after the restart, want none", got-2)
		}
	})
}

func TestAResultCostsOneMorePatchWithAStatusSubresource(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		op := gopf.New()
		gopf.For[*Example](op, resource).OnCreate("create_fn", gopf.WithResult(
			func(context.Context, *gopf.Change[*Example]) (map[string]string, error) {
				return map[string]string{"message": "hello"}, nil
			}))
		gopftest.Start(t, op, c)
		settle()
		c.Create(t, example("x", "a"))
		settle()
		if got := patches(c); got != 2 {
			t.Errorf("%d patches, want 2", got)
		}
		obj := gopftest.Get[*Example](t, c, resource, "default", "x")
		if got := obj.Status["create_fn"].(map[string]any)["message"]; got != "hello" {
			t.Errorf("the result is %v", got)
		}
	})
}

func TestAForeignChangeOfTheStatusIsNoReasonToDoAnything(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		kex := gopf.For[*Example](op, resource)
		kex.OnCreate("create_fn", diary.handler("create"))
		kex.OnUpdate("update_fn", diary.handler("update"))
		gopftest.Start(t, op, c)
		settle()
		c.Create(t, example("x", "a"))
		settle()
		before := patches(c)
		c.PatchStatus(t, resource, "default", "x", map[string]any{"status": map[string]any{"phase": "Ready"}})
		settle()
		if got := patches(c) - before; got != 0 || len(diary.all()) != 1 {
			t.Errorf("%d patches, calls %q", got, diary.all())
		}
	})
}

func TestTheWholeLifeOfAnObject(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		kex := gopf.For[*Example](op, resource)
		kex.OnCreate("create_fn", diary.failing("create", 1, 10*time.Second))
		kex.OnUpdate("update_fn", func(_ context.Context, ch *gopf.Change[*Example]) error {
			diary.add("update %s->%s %s", ch.Old.Spec.Field, ch.Object.Spec.Field, ch.Diff)
			return nil
		})
		kex.OnField("field_fn", "spec.field", func(_ context.Context, ch *gopf.Change[*Example]) error {
			was, _ := ch.OldValue()
			is, _ := ch.NewValue()
			diary.add("field %v->%v", was, is)
			return nil
		})
		kex.OnDelete("delete_fn", diary.handler("delete"))
		gopftest.Start(t, op, c)
		settle()

		c.Create(t, example("x", "a"))
		time.Sleep(time.Minute)
		if got := get(t, c, "x").GetFinalizers(); !slices.Equal(got, []string{"kopf.zalando.org/KopfFinalizerMarker"}) {
			t.Errorf("finalizers: %q", got)
		}
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		settle()
		c.Delete(t, resource, "default", "x")
		settle()
		want := []string{
			"create create a #0", "field <nil>->a", "create create a #1",
			`update a->b change spec.field: "a" -> "b"`, "field a->b",
			"delete delete b",
		}
		if got := diary.all(); !slices.Equal(got, want) {
			t.Errorf("calls:\ngot  %q\nwant %q", got, want)
		}
		if _, exists := c.Lookup(t, resource, "default", "x"); exists {
			t.Error("the object still exists")
		}
	})
}

func TestDelaysSurviveRestarts(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		start := time.Now()
		var diary calls
		declare := func() *gopf.Operator {
			op := gopf.New()
			gopf.For[*Example](op, resource).OnCreate("create_fn", func(_ context.Context, ch *gopf.Change[*Example]) error {
				diary.add("%s #%d %s", time.Since(start).Round(time.Second), ch.Retry, ch.Key()[:4])
				if ch.Retry < 2 {
					return gopf.Wait(100*time.Second, "it is not there yet")
				}
				return nil
			})
			return op
		}
		c.Create(t, example("x", "a"))
		stop := gopftest.Start(t, declare(), c)
		time.Sleep(50 * time.Second)
		stop()
		gopftest.Start(t, declare(), c)
		time.Sleep(time.Hour)
		synctest.Wait()
		got := diary.all()
		if len(got) != 3 || got[0][:2] != "0s" || got[1][:6] != "1m40s " || got[2][:6] != "3m20s " {
			t.Errorf("calls: %q", got)
		}
		if got[0][len(got[0])-4:] != got[2][len(got[2])-4:] {
			t.Errorf("the key changed between attempts: %q", got)
		}
	})
}

// reviewing is a webhook server that gets no requests.
type reviewing struct{}

func (reviewing) Serve(ctx context.Context, _ http.Handler, _ func(webhook.ClientConfig)) error {
	<-ctx.Done()
	return nil
}

func TestNoHandlerStartsWhileTheLastReviewsAreServed(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		op.Settings.Admission.Server = reviewing{}
		x := gopf.For[*Example](op, resource)
		x.OnCreate("create", diary.handler("create"))
		x.Validate("validate", func(context.Context, *gopf.Review[*Example]) error { return nil })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- op.Run(ctx, gopf.Cluster(c.RESTConfig()), gopf.Log(testLog(t))) }()
		settle()
		cancel()
		settle()
		c.Create(t, example("x", "a"))
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got := diary.all(); len(got) != 0 {
			t.Errorf("started after the stop: %q", got)
		}
	})
}
