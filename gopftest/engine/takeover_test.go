package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/storage"
)

// In Kopf, the field of an event handler is part of the last-handled configuration. An
// object that Kopf handled must not look changed.
func TestFieldsOfEventHandlersArePartOfTheEssence(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		o := example("x", "a")
		o.SetAnnotations(map[string]string{annotated: `{"spec":{"field":"a"},"status":{"phase":"Ready"}}` + "\n"})
		c.Create(t, o)
		c.PatchStatus(t, resource, "default", "x", `{"status":{"phase":"Ready","other":1}}`)
		c.Create(t, example("without", "b"))
		c.Patch(t, resource, "default", "without", map[string]any{"metadata": map[string]any{"annotations": map[string]any{
			annotated: `{"spec":{"field":"b"}}` + "\n"}}})
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.OnCreate("create", diary.handler("create"))
		x.OnUpdate("update", func(_ context.Context, ch *gopf.Change[*Example]) error {
			diary.add("update %s %s", ch.Object.Name, ch.Diff)
			return nil
		})
		event := func(id string) func(context.Context, *gopf.WatchEvent[*Example]) error {
			return func(_ context.Context, e *gopf.WatchEvent[*Example]) error {
				diary.add("%s %s %s", id, e.Object.Name, e.Type)
				e.SetResult("told")
				return nil
			}
		}
		x.Field("status.phase").OnEvent("any", event("any"))
		x.Field("status.phase").Value(gopf.Is("Done")).OnEvent("done", event("done"))
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		time.Sleep(time.Hour)
		// The handler's own result also causes an event. The field is unchanged.
		if got, want := diary.all(), []string{"any x ", "any x MODIFIED"}; !slices.Equal(got, want) {
			t.Errorf("after the takeover: %q, want %q", got, want)
		}
		if status := get(t, c, "x").Object["status"].(map[string]any); status["any/status.phase"] != "told" {
			t.Errorf("the result is not under the id with the field: %v", status)
		}
		before := len(diary.all())
		c.PatchStatus(t, resource, "default", "x", `{"status":{"phase":"Done"}}`)
		time.Sleep(time.Hour)
		got := diary.all()[before:]
		if !slices.Contains(got, `update x change status.phase: "Ready" -> "Done"`) || !slices.Contains(got, "done x MODIFIED") {
			t.Errorf("after a change of the field: %q", got)
		}
	})
}

// Kopf removes the records of a handling that it finishes, but not Gopf's note.
func TestANoteOfAHandlingThatKopfFinishedIsRemoved(t *testing.T) {
	const note = "kopf.zalando.org/gopf.handling"
	for name, resumes := range map[string]bool{"changes": false, "resuming, too": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var diary calls
				declare := func() *gopf.Operator {
					op := gopf.New()
					x := gopf.For[*Example](op, resource)
					x.On(gopf.Create|gopf.Update, "first", diary.handler("first"))
					x.On(gopf.Create|gopf.Update, "second", diary.failing("second", 1, 24*time.Hour))
					if resumes {
						x.OnResume("resume", diary.failing("resume", 1, 24*time.Hour))
					}
					return op
				}
				stop := gopftest.Start(t, declare(), c, gopf.Log(quiet()))
				settle()
				c.Create(t, example("x", "a"))
				time.Sleep(time.Minute)
				stop()
				if get(t, c, "x").GetAnnotations()[note] == "" {
					t.Fatal("there is no note, so the test proves nothing")
				}
				writes := patches(c)
				stop = gopftest.Start(t, declare(), c, gopf.Log(quiet()))
				time.Sleep(time.Hour)
				stop()
				if patches(c) != writes {
					t.Errorf("%d writes at a plain restart", patches(c)-writes)
				}
				// Kopf takes over, finishes the handling, and stops.
				c.Patch(t, resource, "default", "x", map[string]any{"metadata": map[string]any{"annotations": map[string]any{
					"kopf.zalando.org/first": nil, "kopf.zalando.org/second": nil, annotated: `{"spec":{"field":"a"}}` + "\n"}}})
				before := len(diary.all())
				stop = gopftest.Start(t, declare(), c, gopf.Log(quiet()))
				time.Sleep(time.Hour)
				stop()
				want, wrote := []string{}, 1
				if resumes {
					want, wrote = []string{"resume resume a #0"}, 2
				}
				if got := diary.all()[before:]; !slices.Equal(got, want) || patches(c) != writes+wrote {
					t.Errorf("calls %q, %d writes", got, patches(c)-writes)
				}
				if left := get(t, c, "x").GetAnnotations()[note]; left != "" && !resumes {
					t.Errorf("the note still exists: %s", left)
				}
				gopftest.Start(t, declare(), c, gopf.Log(quiet()))
				time.Sleep(time.Hour)
				if patches(c) != writes+wrote {
					t.Errorf("%d more writes at the next restart", patches(c)-writes-wrote)
				}
			})
		})
	}
}

func TestPrefixesThatLookLikeKopfsOwnGetAWarning(t *testing.T) {
	for prefix, warned := range map[string]bool{"kopf.example.com": true, "kopf.zalando.org": false, "my.kopf.zalando.org": false, "example.com": false} {
		bubble(t, func(t *testing.T, c *gopftest.Cluster) {
			var log lines
			op := gopf.New()
			op.Settings.Persistence.Progress = storage.MultiProgress(storage.NewAnnotationProgress(prefix), storage.NewStatusProgress("x"))
			op.Settings.Persistence.Base = storage.NewAnnotationBase(prefix)
			gopf.For[*Example](op, resource).OnCreate("create", func(context.Context, *gopf.Change[*Example]) error { return errors.New("never") })
			gopftest.Start(t, op, c, gopf.Log(log.logger()))
			settle()
			if got := log.has("Doubtful declaration", "engine/takeover_test.go:", prefix); got != warned {
				t.Errorf("%s: warned %v:\n%s", prefix, got, strings.Join(log.text, ""))
			}
		})
	}
}
