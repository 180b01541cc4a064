package engine_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
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
			ch.Info("Made", "It is made.")
			ch.Warn("Odd", "But it is odd.")
			ch.Post("Strange", "Odd", "And strange.")
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

func TestAnObjectThatDoesNotFitItsHandlerGetsAWarning(t *testing.T) {
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
