package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

func spec(fields map[string]any) map[string]any { return map[string]any{"spec": fields} }

func gr() schema.GroupResource {
	return schema.GroupResource{Group: "kopf.dev", Resource: "kopfexamples"}
}

// An admission plugin denies the patch of the handler. This must block neither a
// correction of the object nor its deletion.
func TestAForbiddenPatchFailsItsHandlerAndBlocksNothing(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.On(gopf.Create|gopf.Update, "work", func(_ context.Context, ch *gopf.Change[*Example]) error {
			diary.add("work %s", ch.Object.Spec.Field)
			if ch.Object.Spec.Field == "bad" {
				ch.Patch.Set("spec.replicas", 1000000) // denied by the policy
			}
			return nil
		})
		x.OnDelete("drop", diary.handler("drop"))
		c.Fault(gopftest.Requests("patch", "kopfexamples").Where(func(r gopftest.Request) bool {
			return strings.Contains(string(r.Body), "1000000")
		}), gopftest.FailWith(apierrors.NewForbidden(gr(), "x", errors.New("exceeded quota"))))
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		c.Create(t, example("x", "bad"))
		time.Sleep(10 * time.Minute)
		c.Patch(t, resource, "default", "x", spec(map[string]any{"field": "good"}))
		time.Sleep(time.Hour)
		if got := diary.all(); !slices.Contains(got, "work good") {
			t.Errorf("an hour after the correction: %q", got)
		}
		c.Delete(t, resource, "default", "x")
		time.Sleep(time.Hour)
		if _, there := c.Lookup(t, resource, "default", "x"); there {
			t.Errorf("the object still exists an hour after the deletion; calls %q", diary.all())
		}
	})
}

// The text of the error does not fit into the annotations of the object.
func TestAHandlerWithALongErrorIsRetried(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.OnCreate("make", func(_ context.Context, ch *gopf.Change[*Example]) error {
			diary.add("make #%d", ch.Retry)
			if len(diary.all()) == 1 {
				return errors.New(strings.Repeat("a long story ", 25_000))
			}
			return nil
		})
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(time.Hour)
		if got := diary.all(); len(got) < 2 {
			t.Errorf("within an hour: %q", got)
		}
	})
}

// refuse makes the API server reject patches that contain the text.
func refuse(c *gopftest.Cluster, text string) *gopftest.Fault {
	return c.Fault(gopftest.Requests("patch", "kopfexamples").Where(func(r gopftest.Request) bool {
		return strings.Contains(string(r.Body), text)
	}), gopftest.FailWith(apierrors.NewInvalid(schema.GroupKind{Group: "kopf.dev", Kind: "KopfExample"}, "x", nil)))
}

func TestARefusedPatchFailsOnlyItsHandler(t *testing.T) {
	for _, where := range placements {
		for name, test := range map[string]struct {
			opts  []gopf.ChangeOption
			calls int
		}{
			"retried":     {nil, 60},
			"given up":    {[]gopf.ChangeOption{gopf.MaxAttempts(3)}, 3},
			"failed":      {[]gopf.ChangeOption{gopf.ErrorsPermanent()}, 1},
			"ignored":     {[]gopf.ChangeOption{gopf.ErrorsIgnored()}, 1},
			"own backoff": {[]gopf.ChangeOption{gopf.Backoff(30 * time.Minute)}, 2},
		} {
			t.Run(where.name+", "+name, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T, c *gopftest.Cluster) {
					var bad, good int
					op := gopf.New()
					where.choose(&op.Settings.Persistence)
					op.Settings.Execution.Lifecycle = gopf.AllAtOnce
					x := gopf.For[*Example](op, resource)
					x.OnCreate("bad", func(_ context.Context, ch *gopf.Change[*Example]) error {
						bad++
						ch.Patch.Set("spec.size", "wrong")
						ch.SetResult("bad result")
						return nil
					}, test.opts...)
					x.OnCreate("good", func(_ context.Context, ch *gopf.Change[*Example]) error {
						good++
						ch.Patch.Label("good", "yes")
						ch.SetResult("good result")
						return nil
					})
					refuse(c, `"size"`)
					var log lines
					gopftest.Start(t, op, c, gopf.Log(log.logger()))
					settle()
					c.Create(t, example("x", "a"))
					time.Sleep(59*time.Minute + 50*time.Second)
					x1 := get(t, c, "x")
					status, _ := x1.Object["status"].(map[string]any)
					if bad != test.calls || good != 1 || status["good"] != "good result" || x1.GetLabels()["good"] != "yes" || status["bad"] != nil {
						t.Errorf("%d and %d calls, want %d and 1; labels %v, status %v", bad, good, test.calls, x1.GetLabels(), status)
					}
					if !log.has("Handler 'bad' failed", "the API server refused the change") {
						t.Error("the log does not name the handler")
					}
				})
			})
		}
	}
}

func TestARefusedPatchOfASubHandlerLeavesItsParentUnfinished(t *testing.T) {
	for _, where := range placements {
		t.Run(where.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var diary calls
				op := gopf.New()
				where.choose(&op.Settings.Persistence)
				x := gopf.For[*Example](op, resource)
				x.OnCreate("parent", func(_ context.Context, ch *gopf.Change[*Example]) error {
					ch.Sub("good", diary.handler("good"))
					ch.Sub("bad", func(_ context.Context, ch *gopf.Change[*Example]) error {
						diary.add("bad %s", ch.Object.Spec.Field)
						if ch.Object.Spec.Field == "a" {
							ch.Patch.Set("spec.size", "wrong")
						}
						return nil
					})
					ch.SetResult("done")
					return nil
				})
				refuse(c, `"size"`)
				gopftest.Start(t, op, c, gopf.Log(quiet()))
				settle()
				c.Create(t, example("x", "a"))
				time.Sleep(90 * time.Second)
				if s, _ := get(t, c, "x").Object["status"].(map[string]any); s["parent"] != nil {
					t.Errorf("the parent already has a result: %v", s)
				}
				c.Patch(t, resource, "default", "x", spec(map[string]any{"field": "b"}))
				time.Sleep(time.Hour)
				if got, want := diary.all(), []string{"good create a", "bad a", "bad a", "bad b"}; !slices.Equal(got[:len(want)], want) {
					t.Errorf("got %q, want %q first", got, want)
				}
				if s, _ := get(t, c, "x").Object["status"].(map[string]any); s["parent"] != "done" {
					t.Errorf("the result is missing: %v", s)
				}
			})
		})
	}
}

func TestRejectedRecordsNeitherRepeatHandlersNorBlockADeletion(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.OnCreate("make", diary.handler("make"))
		x.OnDelete("drop", diary.handler("drop"))
		refuse(c, `last-handled`)
		var log lines
		gopftest.Start(t, op, c, gopf.Log(log.logger()))
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(time.Hour)
		c.Patch(t, resource, "default", "x", spec(map[string]any{"field": "b"}))
		time.Sleep(time.Hour)
		if got := diary.all(); !slices.Equal(got, []string{"make create a"}) {
			t.Errorf("got %q", got)
		}
		if !log.has("save the progress of handlers") {
			t.Error("the log does not say that progress cannot be saved")
		}
		c.Delete(t, resource, "default", "x")
		time.Sleep(time.Second)
		if _, there := c.Lookup(t, resource, "default", "x"); there || !slices.Contains(diary.all(), "drop delete b") {
			t.Errorf("the deletion is blocked: %v %q", there, diary.all())
		}
	})
}

func TestARejectedPatchOfAnEventHandlerIsDroppedAndLogged(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.OnEvent("watch", func(_ context.Context, e *gopf.WatchEvent[*Example]) error {
			e.Patch.Set("spec.size", "wrong")
			return nil
		})
		x.OnCreate("make", diary.handler("make"))
		x.OnUpdate("change", diary.handler("change"))
		refuse(c, `"size"`)
		var log lines
		gopftest.Start(t, op, c, gopf.Log(log.logger()))
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(time.Minute)
		c.Patch(t, resource, "default", "x", spec(map[string]any{"field": "b"}))
		time.Sleep(time.Minute)
		if got := diary.all(); !slices.Equal(got, []string{"make create a", "change update b"}) {
			t.Errorf("got %q", got)
		}
		if !log.has("event handler", "handler=watch") {
			t.Error("the log does not name the handler")
		}
	})
}
