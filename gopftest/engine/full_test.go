package engine_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// annotationsLimit is the API server's limit for all annotations of an object, in bytes.
const annotationsLimit = 256 << 10

// filler is an annotation that is not part of the essence.
const filler = "tenant.kopf.zalando.org/filler"

// fill adds an annotation that leaves the given number of bytes free.
func fill(t *testing.T, c *gopftest.Cluster, free int) {
	t.Helper()
	size := len(filler)
	for key, value := range annotationsOf(t, c) {
		if key != filler {
			size += len(key) + len(value)
		}
	}
	annotate(t, c, map[string]any{filler: strings.Repeat("x", annotationsLimit-size-free)})
}

func annotate(t *testing.T, c *gopftest.Cluster, annotations map[string]any) {
	t.Helper()
	c.Patch(t, resource, "default", "x", map[string]any{"metadata": map[string]any{"annotations": annotations}})
}

func annotationsOf(t *testing.T, c *gopftest.Cluster) map[string]string {
	t.Helper()
	o, _ := c.Lookup(t, resource, "default", "x")
	return maps.Clone(o.GetAnnotations())
}

// A tenant fills the annotations of an object, so the operator can save nothing there, and
// deletes it. The deletion handler runs and is retried, and the object is deleted.
func TestFullAnnotationsDoNotBlockADeletion(t *testing.T) {
	for name, when := range map[string]string{"after the creation": "handled", "while handlers are retried": "retried", "from the beginning": "new"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var diary calls
				op := gopf.New()
				x := gopf.For[*Example](op, resource)
				x.OnCreate("make", func(_ context.Context, ch *gopf.Change[*Example]) error {
					diary.add("make #%d", ch.Retry)
					if when == "retried" {
						return gopf.RetryAfter(time.Hour, errors.New("not yet"))
					}
					return nil
				})
				attempts := 0
				x.OnDelete("drop", func(context.Context, *gopf.Change[*Example]) error {
					diary.add("drop")
					if attempts++; attempts < 4 {
						return gopf.RetryAfter(10*time.Second, errors.New("not yet"))
					}
					return nil
				})
				gopftest.Start(t, op, c, gopf.Log(quiet()))
				settle()
				made := example("x", "a")
				if when == "new" {
					made.SetAnnotations(map[string]string{"tenant.dev/filler": strings.Repeat("x", annotationsLimit-len("tenant.dev/filler")-10)})
				}
				c.Create(t, made)
				time.Sleep(time.Minute)
				if when != "new" {
					fill(t, c, 0)
					time.Sleep(time.Minute)
				}
				c.Delete(t, resource, "default", "x")
				time.Sleep(10 * time.Minute)
				if o, there := c.Lookup(t, resource, "default", "x"); there {
					t.Errorf("the object still exists 10 minutes after the deletion, with the finalizers %v", o.GetFinalizers())
				}
				if attempts != 4 {
					t.Errorf("%d attempts of the cleanup, want 4: %q", attempts, diary.all())
				}
			})
		})
	}
}

// A record fits once the base is removed.
func TestTheBaseIsRemovedIfDeletionRecordsNeedTheSpace(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		var diary calls
		x.OnCreate("make", diary.handler("make"))
		x.OnDelete("drop", diary.failing("drop", 1, time.Hour))
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		c.Create(t, example("x", strings.Repeat("a", 1000)))
		time.Sleep(time.Minute)
		fill(t, c, 0)
		time.Sleep(time.Minute)
		c.Delete(t, resource, "default", "x")
		time.Sleep(time.Minute)
		got := annotationsOf(t, c)
		if got[annotated] != "" || got["kopf.zalando.org/drop"] == "" {
			t.Errorf("the base has %d bytes, the record is %q", len(got[annotated]), got["kopf.zalando.org/drop"])
		}
		time.Sleep(2 * time.Hour)
		if _, there := c.Lookup(t, resource, "default", "x"); there {
			t.Error("the object still exists")
		}
	})
}

// A handler may return a part of the object, which a tenant can make large.
func TestALargeResultDoesNotBlockADeletion(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.OnDelete("drop", func(_ context.Context, ch *gopf.Change[*Example]) error {
			diary.add("drop #%d", ch.Retry)
			ch.SetResult(strings.Repeat("x", 4<<20))
			ch.Patch.Label("dropped", "true")
			return nil
		})
		var log lines
		gopftest.Start(t, op, c, gopf.Log(log.logger()))
		settle()
		made := example("x", "a")
		made.SetFinalizers([]string{"tenant.dev/other"})
		c.Create(t, made)
		time.Sleep(time.Minute)
		c.Delete(t, resource, "default", "x")
		time.Sleep(time.Hour)
		if got := diary.all(); !slices.Equal(got, []string{"drop #0"}) {
			t.Errorf("got %q", got)
		}
		o, _ := c.Lookup(t, resource, "default", "x")
		if len(o.GetFinalizers()) != 1 || o.GetLabels()["dropped"] != "true" {
			t.Errorf("the finalizers are %v, and the labels are %v", o.GetFinalizers(), o.GetLabels())
		}
		if !log.has("The result of a handler is too large", "drop") {
			t.Error("no line says that the result was dropped")
		}
	})
}

func TestADeletionDoesNotSaveABase(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		var diary calls
		x.OnCreate("make", diary.handler("make"))
		x.OnDelete("drop", diary.failing("drop", 1, time.Hour))
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		made := example("x", "a")
		made.SetFinalizers([]string{"tenant.dev/other"})
		c.Create(t, made)
		time.Sleep(time.Minute)
		before := annotationsOf(t, c)[annotated]
		c.Delete(t, resource, "default", "x")
		time.Sleep(time.Minute)
		c.Patch(t, resource, "default", "x", spec(map[string]any{"field": "b"}))
		time.Sleep(2 * time.Hour)
		if after := annotationsOf(t, c)[annotated]; after != before || before == "" {
			t.Errorf("the base was %q and is %q", before, after)
		}
		if o, _ := c.Lookup(t, resource, "default", "x"); len(o.GetFinalizers()) != 1 {
			t.Errorf("the finalizers are %v", o.GetFinalizers())
		}
	})
}
