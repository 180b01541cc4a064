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

// An admission plugin forbids what the handler asks for. Neither a correction of the
// object nor its deletion may wait for that.
func TestAForbiddenPatchFailsItsHandlerAndHoldsUpNothing(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.On(gopf.Create|gopf.Update, "work", func(_ context.Context, ch *gopf.Change[*Example]) error {
			diary.add("work %s", ch.Object.Spec.Field)
			if ch.Object.Spec.Field == "bad" {
				ch.Patch.Set("spec.replicas", 1000000) // the policy says no
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
		time.Sleep(24 * time.Hour)
		if got := diary.all(); !slices.Contains(got, "work good") {
			t.Errorf("a day after the correction: %q", got)
		}
		c.Delete(t, resource, "default", "x")
		time.Sleep(24 * time.Hour)
		if _, there := c.Lookup(t, resource, "default", "x"); there {
			t.Errorf("a day after the deletion the object is still there; calls %q", diary.all())
		}
	})
}

// The text of the error would not fit on the object.
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
		time.Sleep(24 * time.Hour)
		if got := diary.all(); len(got) < 2 {
			t.Errorf("within a day: %q", got)
		}
	})
}
