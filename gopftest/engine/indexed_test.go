package engine_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// selections are the label selectors that the operator listed and watched with.
func selections(c *gopftest.Cluster) (found []string) {
	for _, r := range c.Requests() {
		if (r.Verb == "list" || r.Verb == "watch") && r.Resource == "kopfexamples" {
			if at, err := url.Parse(r.Path); err == nil {
				found = append(found, at.Query().Get("labelSelector"))
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func named(_ context.Context, s *gopf.Subject[*Example]) (map[string]string, error) {
	return map[string]string{s.Object.Name: s.Object.Spec.Field}, nil
}

func TestObjectsThatOnlyFeedIndicesAreSelectedByTheServer(t *testing.T) {
	type kex = *gopf.Resource[*Example]
	prod, present := gopf.Is("prod"), gopf.Present
	noted := func(context.Context, *gopf.WatchEvent[*Example]) error { return nil }
	for name, c := range map[string]struct {
		declare func(x kex)
		want    string
	}{
		"a value": {func(x kex) { gopf.Index(x.WithLabel("tier", prod), "i", named) }, "tier=prod"},
		"several labels": {func(x kex) {
			gopf.Index(x.WithLabel("tier", prod).WithLabel("app", present).WithLabel("old", gopf.Absent), "i", named)
		}, "app,!old,tier=prod"},
		"other filters":   {func(x kex) { gopf.Index(x.WithLabel("tier", prod).WithAnnotation("a", present), "i", named) }, "tier=prod"},
		"a mirror":        {func(x kex) { gopf.Mirror(x.WithLabel("tier", prod)) }, "tier=prod"},
		"two of the same": {func(x kex) { gopf.Index(x.WithLabel("tier", prod), "i", named); gopf.Mirror(x.WithLabel("tier", prod)) }, "tier=prod"},
		"what is in common": {func(x kex) {
			gopf.Index(x.WithLabel("tier", prod).WithLabel("app", gopf.Is("a")), "i", named)
			gopf.Mirror(x.WithLabel("app", gopf.Is("b")).WithLabel("tier", prod))
		}, "tier=prod"},
		"nothing in common": {func(x kex) { gopf.Index(x.WithLabel("tier", prod), "i", named); gopf.Mirror(x) }, ""},
		"a function":        {func(x kex) { gopf.Index(x.WithLabel("tier", gopf.Not(prod)), "i", named) }, ""},
		"no possible value": {func(x kex) { gopf.Index(x.WithLabel("tier", gopf.Is("no label")), "i", named) }, ""},
		"an own selection":  {func(x kex) { gopf.Index(x.Select("own=yes").WithLabel("tier", prod), "i", named) }, "own=yes"},
		"other handlers": {func(x kex) {
			gopf.Index(x.WithLabel("tier", prod), "i", named)
			x.WithLabel("tier", prod).OnEvent("e", noted)
		}, ""},
		"reviews beside it": {func(x kex) {
			gopf.Index(x.WithLabel("tier", prod), "i", named)
			x.Validate("v", func(context.Context, *gopf.Review[*Example]) error { return nil })
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, cluster *gopftest.Cluster) {
				op := gopf.New()
				op.Settings.Admission.Managed = "auto.kopf.dev"
				c.declare(gopf.For[*Example](op, resource))
				gopftest.Start(t, op, cluster)
				settle()
				if got := selections(cluster); !slices.Equal(got, []string{c.want}) {
					t.Errorf("got %q, want %q", got, c.want)
				}
			})
		})
	}
}

func TestObjectsComeIntoAndLeaveAnIndexWithTheirLabels(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		op := gopf.New()
		index := gopf.Index(gopf.For[*Example](op, resource).WithLabel("tier", gopf.Is("prod")), "i", named)
		create := func(name, tier string) {
			obj := example(name, "a")
			obj.SetLabels(map[string]string{"tier": tier})
			c.Create(t, obj)
		}
		label := func(name, tier string) {
			c.Patch(t, resource, "default", name, map[string]any{"metadata": map[string]any{"labels": map[string]any{"tier": tier}}})
		}
		expect := func(when string, want ...string) {
			t.Helper()
			settle()
			if got := slices.Sorted(index.Keys()); !slices.Equal(got, want) {
				t.Errorf("%s: got %q, want %q", when, got, want)
			}
		}
		create("in", "prod")
		create("out", "test")
		gopftest.Start(t, op, c)
		expect("at first", "in")
		for i := range 3 {
			label("in", "test")
			expect(fmt.Sprint("left ", i))
			label("in", "prod")
			expect(fmt.Sprint("came back ", i), "in")
		}
		label("out", "prod")
		expect("came", "in", "out")

		// What happens while the operator cannot watch is found by the next list.
		cut := func(change func()) {
			c.Fault(gopftest.Requests("watch", "kopfexamples").First(3), gopftest.Fail(503))
			c.CutStreams()
			change()
			c.Expire()
			time.Sleep(time.Minute)
		}
		cut(func() { label("in", "test") })
		expect("left during an outage", "out")
		cut(func() { label("in", "prod") })
		expect("came back during an outage", "in", "out")
		cut(func() { label("in", "test") })
		expect("left again", "out")
		label("in", "prod")
		expect("came back after a list without it", "in", "out")
		c.Delete(t, resource, "default", "in")
		expect("deleted", "out")
	})
}

func TestAnObjectThatComesBackIntoASelectionIsHandled(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		kex := gopf.For[*Example](op, resource).Select("tier=prod")
		kex.OnCreate("c", diary.handler("create"))
		kex.OnUpdate("u", diary.handler("update"))
		obj := example("x", "a")
		obj.SetLabels(map[string]string{"tier": "prod"})
		c.Create(t, obj)
		gopftest.Start(t, op, c)
		settle()
		for _, tier := range []string{"test", "prod"} {
			c.Patch(t, resource, "default", "x", map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"tier": tier}},
				"spec":     map[string]any{"field": tier},
			})
			settle()
		}
		if got, want := diary.all(), []string{"create create a", "update update prod"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
