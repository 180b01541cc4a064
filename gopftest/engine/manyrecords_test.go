package engine_test

import (
	"context"
	"encoding/json"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// Any client that may edit an object can forge records of so many sub-handlers that the API server
// refuses a patch that removes them one by one.
func TestADeletionDoesNotWaitForManyForgedRecords(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var deletions atomic.Int32
		op := gopf.New()
		examples := gopf.For[*Example](op, resource)
		examples.OnCreate("create", func(context.Context, *gopf.Change[*Example]) error { return nil })
		examples.OnDelete("delete", func(context.Context, *gopf.Change[*Example]) error {
			deletions.Add(1)
			return nil
		})
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		made := example("x", "a")
		made.SetAnnotations(map[string]string{"example.com/x": "stays"}) // otherwise all annotations are removed at once
		c.Create(t, made)
		time.Sleep(time.Minute)
		var subs []string
		forged := map[string]any{}
		for i := range 10_100 {
			sub := strconv.FormatInt(int64(i), 36)
			subs = append(subs, sub)
			forged["kopf.zalando.org/"+sub] = ""
		}
		record, err := json.Marshal(map[string]any{"subrefs": subs})
		if err != nil {
			t.Fatal(err)
		}
		forged["kopf.zalando.org/delete"] = string(record)
		c.Patch(t, resource, "default", "x", map[string]any{"metadata": map[string]any{"annotations": forged}})
		time.Sleep(time.Minute)
		c.Delete(t, resource, "default", "x")
		time.Sleep(5 * time.Second)
		if _, left := c.Lookup(t, resource, "default", "x"); left || deletions.Load() != 1 {
			t.Errorf("the object is left: %v; the delete handler was called %d times", left, deletions.Load())
		}
	})
}
