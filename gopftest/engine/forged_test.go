package engine_test

import (
	"fmt"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

const note = "kopf.zalando.org/gopf.handling"

// A tenant that may not write the status puts a change of the status into the note, where
// only operators with records in the status store changes.
func TestChangesInAForgedNoteAreNotSent(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
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
		if s := get(t, c, "x").Object["status"]; s != nil {
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
}
