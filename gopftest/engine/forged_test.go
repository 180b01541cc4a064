package engine_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/storage"
)

const note = "kopf.zalando.org/gopf.handling"

// A tenant that may not write the status puts a change of the status into the note, where
// only operators with records in the status store changes.
func TestChangesInAForgedNoteAreNotSent(t *testing.T) {
	annotations := storage.NewAnnotationProgress(storage.DefaultPrefix)
	for name, records := range map[string]storage.Progress{
		"by default":           storage.DefaultProgress(),
		"while they are moved": storage.MultiProgress(storage.NewStatusProgress("op"), storage.RetiredProgress(annotations)),
		"in annotations only":  annotations,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var diary calls
				op := gopf.New()
				op.Settings.Persistence.Progress = records
				x := gopf.For[*Example](op, resource)
				x.On(gopf.Create|gopf.Update, "work", diary.handler("work"))
				var log lines
				gopftest.Start(t, op, c, gopf.Log(log.logger()))
				settle()
				c.Create(t, example("x", "a"))
				time.Sleep(time.Minute)
				message := `{\"v\":2,\"todo\":[{\"handler\":\"work\",\"patch\":{\"status\":{\"approved\":true}}}]}`
				c.Patch(t, resource, "default", "x", map[string]any{
					"metadata": map[string]any{"annotations": map[string]any{
						note: `{"purpose":"update","started":"2026-01-01T00:00:00","message":"` + message + `"}`}},
					"status": map[string]any{"direct": true},
				})
				time.Sleep(time.Hour)
				if s, _ := get(t, c, "x").Object["status"].(map[string]any); s["approved"] != nil || s["direct"] != nil {
					t.Errorf("status: %v", s)
				}
				if _, there := annotationsOf(t, c)[note]; there {
					t.Error("the note still exists")
				}
				if !log.has("[default/x]", "They are ignored") {
					t.Error("no warning names the object")
				}
				if got := fmt.Sprint(diary.all()); got != "[work create a]" {
					t.Error(got)
				}
			})
		})
	}
}

// A tenant forges a note of a few kilobytes in which thousands of sub-handlers saw other
// states. The operator must neither run out of memory nor be busy for minutes with it.
func TestAForgedNoteOfManySubHandlersIsCheapToHandle(t *testing.T) {
	for name, essences := range map[string]int{"of one state": 1, "of a state each": 1000} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var diary calls
				op := gopf.New()
				x := gopf.For[*Example](op, resource)
				x.On(gopf.Create|gopf.Update, "work", diary.handler("work"))
				gopftest.Start(t, op, c, gopf.Log(quiet()))
				settle()
				made := example("x", "a")
				for i := range 2000 {
					made.Object["spec"].(map[string]any)[fmt.Sprint("f", i)] = int64(i)
				}
				c.Create(t, made)
				time.Sleep(time.Minute)
				allocated := allocations()
				c.Patch(t, resource, "default", "x", map[string]any{
					"metadata": map[string]any{"annotations": map[string]any{note: manySightings(t, annotationsOf(t, c)[annotated], 1000, essences)}},
				})
				time.Sleep(time.Minute)
				if took := allocations() - allocated; took > 1<<30 {
					t.Errorf("it took %d MiB", took>>20)
				}
				if _, there := annotationsOf(t, c)[note]; there {
					t.Error("the note still exists")
				}
				c.Patch(t, resource, "default", "x", spec(map[string]any{"field": "b"}))
				time.Sleep(time.Minute)
				if got := diary.all(); got[len(got)-1] != "work update b" {
					t.Errorf("calls: %q", got)
				}
			})
		})
	}
}

// manySightings returns a note for the stored base in which so many sub-handlers saw so
// many other states.
func manySightings(t *testing.T, base string, subs, essences int) string {
	t.Helper()
	sum := sha256.Sum256([]byte(strings.TrimSpace(base)))
	states, saw := make([]any, essences), map[string]any{}
	for i := range states {
		states[i] = map[string]any{"spec": map[string]any{"a": i}}
	}
	for i := range subs {
		saw[fmt.Sprint("work/", i)] = map[string]any{"essence": i % essences}
	}
	text, err := json.Marshal(map[string]any{"v": 2, "base": hex.EncodeToString(sum[:8]), "essences": states, "saw": saw})
	if err != nil {
		t.Fatal(err)
	}
	return `{"purpose":"update","started":"2026-01-01T00:00:00","message":"gz:` + bomb(t, string(text)) + `"}`
}

// allocations returns the bytes that this process has allocated so far.
func allocations() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// Handlers pass the key to other systems, where it may name something of another tenant.
func TestAForgedKeyIsNotUsed(t *testing.T) {
	for name, forge := range map[string]func(victim string) string{
		"an arbitrary text":         func(string) string { return "../prod" },
		"the key of another object": func(victim string) string { return victim },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var diary calls
				op := gopf.New()
				x := gopf.For[*Example](op, resource)
				x.OnCreate("work", func(_ context.Context, ch *gopf.Change[*Example]) error {
					diary.add("%s", strings.TrimSuffix(ch.Key(), "/work"))
					if ch.Object.Name == "x" && ch.Retry < 3 {
						return gopf.Wait(time.Minute, "not yet")
					}
					return nil
				})
				gopftest.Start(t, op, c, gopf.Log(quiet()))
				settle()
				c.Create(t, example("victim", "a"))
				settle()
				forged := forge(diary.all()[0])
				made := example("x", "a")
				made.SetAnnotations(map[string]string{
					"kopf.zalando.org/work": `{"started":"1999-01-01T00:00:00","purpose":"create","retries":1}`,
					note:                    fmt.Sprintf(`{"started":"1999-01-01T00:00:00","purpose":"create","message":"{\"v\":2,\"key\":\"%s\"}"}`, forged),
				})
				c.Create(t, made)
				time.Sleep(time.Hour)
				got := diary.all()[1:]
				if len(got) != 3 || got[0] == forged || got[1] != got[0] || got[2] != got[0] {
					t.Errorf("forged %s, keys %q", forged, got)
				}
			})
		})
	}
}

// A tenant that may write the status puts thousands of changes there that the API server
// refuses. Each of them alone would cost requests and a line of the log.
func TestManyRefusedChangesInAForgedNoteAreIgnored(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		op.Settings.Persistence = gopf.StateInStatus("op")
		x := gopf.For[*Example](op, resource)
		x.On(gopf.Create|gopf.Update, "work", diary.handler("work"))
		var log lines
		gopftest.Start(t, op, c, gopf.Log(log.logger()))
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(time.Minute)
		var todo []any
		for i := range 2000 {
			todo = append(todo, map[string]any{"handler": fmt.Sprint("work/", i), "patch": map[string]any{"metadata": map[string]any{"labels": map[string]any{"a b": "invalid"}}}})
		}
		text, err := json.Marshal(map[string]any{"v": 2, "todo": todo})
		if err != nil {
			t.Fatal(err)
		}
		before := len(c.Requests())
		forged := map[string]any{"purpose": "update", "started": "2026-01-01T00:00:00", "message": "gz:" + bomb(t, string(text))}
		c.PatchStatus(t, resource, "default", "x", map[string]any{"status": map[string]any{"op": map[string]any{"progress": map[string]any{"gopf.handling": forged}}}})
		c.Patch(t, resource, "default", "x", spec(map[string]any{"field": "b"}))
		time.Sleep(time.Hour)
		if n := len(c.Requests()) - before; n > 500 {
			t.Errorf("%d requests", n)
		}
		if n := log.count("refused"); n > 3 {
			t.Errorf("%d lines", n)
		}
		if !log.has("[default/x]", "too many unsent changes") {
			t.Error("no warning names the object")
		}
		if got := fmt.Sprint(diary.all()); got != "[work create a work update b]" {
			t.Error(got)
		}
	})
}
