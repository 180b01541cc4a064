package engine_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/logs"
)

// bomb returns the base64 of gzipped text that is much longer.
func bomb(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write([]byte(text)) // cannot fail: it is written into memory
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// A tenant puts decompression bombs where the operator stores its state. They count as
// absent, one warning names the object, and the object is handled.
func TestBombsInStoredStateCountAsAbsent(t *testing.T) {
	wide := `{"spec":[` + strings.Repeat(`{"a":0},`, 2<<20) + `{}]}`
	deep := strings.Repeat(`{"a":`, 9_990) + "{}" + strings.Repeat("}", 9_990)
	for name, annotations := range map[string]map[string]string{
		"a compressed base": {annotated + "-gz": bomb(t, wide)},
		"a deep base":       {annotated + "-gz": bomb(t, deep)},
		"a handling note":   {"kopf.zalando.org/gopf.handling": `{"purpose":"create","started":"2026-01-01","message":"gz:` + bomb(t, wide) + `"}`},
		"a record":          {"kopf.zalando.org/make": `{"subrefs":[` + strings.Repeat(`"a",`, 50_000) + `"b"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var diary calls
				var log lines
				op := gopf.New()
				x := gopf.For[*Example](op, resource)
				x.OnCreate("make", func(_ context.Context, ch *gopf.Change[*Example]) error {
					diary.add("%s #%d", ch.Reason, ch.Retry)
					if ch.Retry < 2 {
						return gopf.Wait(time.Minute, "not yet")
					}
					return nil
				})
				gopftest.Start(t, op, c, gopf.Log(slog.New(logs.New(&log, logs.Options{Level: slog.LevelWarn, Prefix: true}))))
				settle()
				made := example("x", "a")
				made.SetAnnotations(annotations)
				c.Create(t, made)
				time.Sleep(time.Hour)
				if got := diary.all(); !slices.Equal(got, []string{"create #0", "create #1", "create #2"}) {
					t.Errorf("calls: %q", got)
				}
				if len(log.text) != 1 || !log.has("[default/x]", "cannot be read") {
					t.Errorf("warnings: %q", log.text)
				}
				for key := range annotations {
					if _, there := annotationsOf(t, c)[key]; there {
						t.Errorf("%s still exists", key)
					}
				}
			})
		})
	}
}

// One unreadable object does not block its kind, neither in a list nor in a watch. When
// it becomes readable, it is served.
func TestAnObjectThatCannotBeReadIsNamedAndOthersAreServed(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		// Just beyond the limit of 1,000 levels: each level more is copied many times.
		deep := map[string]any{}
		for range 1_000 {
			deep = map[string]any{"a": deep}
		}
		var diary calls
		var log lines
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.On(gopf.Create|gopf.Update, "work", func(_ context.Context, ch *gopf.Change[*Example]) error {
			diary.add("%s %s %s", ch.Reason, ch.Object.Name, ch.Object.Spec.Field)
			return nil
		})
		x.OnDelete("drop", func(_ context.Context, ch *gopf.Change[*Example]) error {
			diary.add("drop %s", ch.Object.Name)
			return nil
		})
		listed := example("listed", "a")
		listed.Object["deep"] = deep
		c.Create(t, listed)
		c.Create(t, example("before", "a"))
		gopftest.Start(t, op, c, gopf.Log(log.logger()))
		time.Sleep(time.Minute)
		c.Patch(t, resource, "default", "before", map[string]any{"deep": deep, "spec": map[string]any{"field": "b"}})
		c.Create(t, example("after", "a"))
		time.Sleep(time.Minute)
		c.Patch(t, resource, "default", "before", map[string]any{"deep": nil})
		time.Sleep(time.Minute)
		if want := []string{"create before a", "create after a", "update before b"}; !slices.Equal(diary.all(), want) {
			t.Errorf("calls %q, want %q", diary.all(), want)
		}
		for _, name := range []string{"listed", "before"} {
			n := log.count("cannot be read", name)
			if n != 1 {
				t.Errorf("%s is named %d times", name, n)
			}
		}
	})
}

// Filters and storages are part of a turn; handlers are not.
func TestAnExpensiveTurnIsLoggedWithItsObject(t *testing.T) {
	for name, slow := range map[string]bool{"slow": true, "fast": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var log lines
				op := gopf.New()
				x := gopf.For[*Example](op, resource).When(func(*gopf.Candidate[*Example]) bool {
					if slow {
						time.Sleep(11 * time.Second)
					}
					return true
				})
				x.OnCreate("make", func(context.Context, *gopf.Change[*Example]) error {
					time.Sleep(time.Hour)
					return errors.New("not yet")
				}, gopf.MaxAttempts(1))
				gopftest.Start(t, op, c, gopf.Log(log.logger()))
				settle()
				c.Create(t, example("x", "a"))
				time.Sleep(5 * time.Hour)
				if got := log.has("[default/x]", "expensive"); got != slow {
					t.Errorf("logged: %v; %q", got, log.text)
				}
			})
		})
	}
}
