package engine_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// A tenant that may not write the status puts a change of the status into a note in an
// annotation. In the status, notes of the operator have such changes, and they are sent.
func TestChangesInAForgedNoteAreNotMovedToTheStatus(t *testing.T) {
	const todo = `{\"v\":2,\"todo\":[{\"handler\":\"create\",\"patch\":{\"status\":{\"approved\":true}}}]}`
	for name, forged := range map[string]map[string]string{
		"of a creation": {
			"things.example.com/gopf.handling": `{"purpose":"create","started":"2000-01-01T00:00:00","message":"` + todo + `"}`,
			"things.example.com/create":        `{"started":"1999-01-01T00:00:00","purpose":"create","retries":1,"delayed":"2000-01-01T00:30:00"}`,
		},
		"of an update": {
			"things.example.com/last-handled-configuration": `{"spec":{"field":"foreign"}}` + "\n",
			"things.example.com/gopf.handling":              `{"purpose":"update","started":"2000-01-01T00:00:00","message":"` + todo + `"}`,
			"things.example.com/create":                     `{"started":"1999-01-01T00:00:00","purpose":"update","retries":1,"delayed":"2000-01-01T00:30:00"}`,
		},
	} {
		for _, mover := range []string{"a handler", "a reconcile handler", "a timer", "the command"} {
			t.Run(name+", moved by "+mover, func(t *testing.T) {
				owners(t, func(t *testing.T, c *gopftest.Cluster) {
					c.Create(t, thingsCRD(t, keepsAll, withStatus))
					declare := func() *gopf.Operator {
						op := gopf.New(gopf.Identity("things.example.com", gopf.StateInStatus("")))
						x := gopf.For[*Example](op, thingsResource)
						x.On(gopf.Create|gopf.Update, "create", func(context.Context, *gopf.Change[*Example]) error { return nil })
						switch mover {
						case "a reconcile handler":
							x.Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
								r.Patch.MergeStatus(map[string]any{"reconciled": true})
								gopf.Want(r, childMap("one", "a"))
								return nil
							}, gopf.Owns[*corev1.ConfigMap]())
						case "a timer":
							x.Timer("tick", time.Minute, func(_ context.Context, tick *gopf.Tick[*Example]) error {
								tick.Patch.MergeStatus(map[string]any{"ticked": true})
								return nil
							})
						}
						return op
					}
					made := thing("x")
					made.SetAnnotations(forged)
					c.Create(t, made)
					if mover == "the command" {
						if err := declare().MoveState(t.Context(), "status", false, io.Discard, gopf.Cluster(c.RESTConfig()), gopf.Log(quiet())); err != nil {
							t.Fatal(err)
						}
					}
					gopftest.Start(t, declare(), c, gopf.Log(quiet()))
					time.Sleep(2 * time.Hour)
					status, _ := c.Get(t, thingsResource, "default", "x").Object["status"].(map[string]any)
					if status["approved"] != nil {
						t.Errorf("the change of the tenant was sent: %v", status)
					}
					state, _ := status["things"].(map[string]any)
					if base, _ := state["last-handled-configuration"].(string); !strings.Contains(base, `"field"`) {
						t.Errorf("the object was not handled: %v", status)
					}
				})
			})
		}
	}
}
