package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// movingOwner declares a change handler and children whose state is in the status or in
// annotations.
func movingOwner(inStatus bool, diary *calls) *gopf.Operator {
	op := gopf.New(gopf.Identity("things.example.com"))
	if inStatus {
		op = gopf.New(gopf.Identity("things.example.com", gopf.StateInStatus("")))
	} else {
		op.Settings.Persistence.FormerStatusKeys = []string{"things"}
	}
	x := gopf.For[*Example](op, thingsResource)
	x.OnCreate("create", diary.handler("create"))
	x.Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
		one := gopf.Want(r, childMap("one", r.Object.Spec.Field))
		gopf.Want(r, childMap("two", "same"), gopf.DependsOn(one))
		return nil
	}, gopf.Owns[*corev1.ConfigMap]())
	return op
}

func TestStateOfChildrenMovesWithTheRest(t *testing.T) {
	for _, toStatus := range []bool{true, false} {
		for _, first := range []string{"child", "object", "none"} {
			t.Run(fmt.Sprintf("to status %t, first change %s", toStatus, first), func(t *testing.T) {
				owners(t, func(t *testing.T, c *gopftest.Cluster) {
					c.Create(t, thingsCRD(t, keepsAll, withStatus))
					var diary calls
					runs(t, c, movingOwner(!toStatus, &diary), func() { c.Create(t, thing("x")) }, gopf.Log(quiet()))
					two := c.Get(t, configMaps, "default", "two").GetResourceVersion()
					for range 2 { // the second run finds what the first has moved
						runs(t, c, movingOwner(toStatus, &diary), func() {
							switch first {
							case "child":
								c.Patch(t, configMaps, "default", "one", map[string]any{"data": map[string]any{"key": "drift"}})
							case "object":
								c.Patch(t, thingsResource, "default", "x", map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": fmt.Sprint(time.Now().Unix())}}})
							}
						}, gopf.Log(quiet()))
					}
					if got, want := diary.all(), []string{"create create a"}; !slices.Equal(got, want) {
						t.Errorf("calls %q, want %q", got, want)
					}
					if got, want := childValues(t, c), []string{"one a", "two same"}; !slices.Equal(got, want) {
						t.Errorf("there are %q, want %q", got, want)
					}
					if now := c.Get(t, configMaps, "default", "two").GetResourceVersion(); now != two {
						t.Error("a child that did not change was written")
					}
					x := c.Get(t, thingsResource, "default", "x")
					if first == "none" {
						return // a restart alone writes nothing
					}
					inStatus := strings.Contains(fmt.Sprint(x.Object["status"]), "gopf.children.children")
					if inStatus != toStatus {
						t.Errorf("the inventory is in the status: %t, want %t: %v", inStatus, toStatus, x.Object)
					}
					var log lines
					gopftest.Start(t, movingOwner(toStatus, &diary), c, gopf.Log(log.logger()))
					settle()
					c.Delete(t, thingsResource, "default", "x")
					time.Sleep(time.Minute)
					if _, still := c.Lookup(t, thingsResource, "default", "x"); still || len(childValues(t, c)) > 0 {
						t.Errorf("after the deletion, there are %q", childValues(t, c))
					}
				})
			})
		}
	}
}
