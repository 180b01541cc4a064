package metacontroller

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A tenant creates parents with large selectors, and many orphans.
func TestTheEventOfAnOrphanDecodesNoSelectorTwice(t *testing.T) {
	labels := map[string]any{}
	for i := range 3000 {
		labels[fmt.Sprint("l", i)] = "v"
	}
	var all []*unstructured.Unstructured
	for i := range 50 {
		p := selecting("tenant", fmt.Sprint(i), "x")
		if err := unstructured.SetNestedMap(p.Object, labels, "spec", "selector", "matchLabels"); err != nil {
			t.Fatal(err)
		}
		p.SetResourceVersion("1")
		all = append(all, p)
	}
	invalid := selecting("tenant", "invalid", "x")
	invalid.Object["spec"] = map[string]any{}
	c, _ := parentsIn(newShelf(t, append(all, invalid)...))
	orphan := selecting("tenant", "orphan", "")
	orphan.SetLabels(map[string]string{"app": "x"})
	c.childChanged(orphan, true)
	if n := testing.AllocsPerRun(5, func() { c.childChanged(orphan, true) }); n > 2000 {
		t.Errorf("an orphan costs %.0f allocations", n)
	}
}

func TestTheSelectorOfAChangedParentIsDecodedAgain(t *testing.T) {
	p := selecting("tenant", "p", "cats")
	p.SetResourceVersion("1")
	stock := newShelf(t, p)
	c, queued := parentsIn(stock)
	orphan := selecting("tenant", "orphan", "")
	orphan.SetLabels(map[string]string{"app": "cats"})
	for i, app := range []string{"cats", "dogs", "cats", "cats"} {
		changed := selecting("tenant", "p", app)
		changed.SetResourceVersion(fmt.Sprint(i + 1))
		if err := stock.Update(changed); err != nil {
			t.Fatal(err)
		}
		c.childChanged(orphan, true)
		if got := queued.take(); slices.Contains(got, "tenant/p") != (app == "cats") {
			t.Errorf("a selector for %s: the parents %q are queued", app, got)
		}
	}
	if len(c.selectors) != 1 {
		t.Errorf("%d selectors of one parent", len(c.selectors))
	}
	c.parentEvents(0).OnDelete(p)
	if len(c.selectors) != 0 {
		t.Error("the selector of a deleted parent is kept")
	}
}
