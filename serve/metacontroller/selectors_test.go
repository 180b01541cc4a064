package metacontroller

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A tenant creates parents with large selectors, and many orphans.
func TestTheEventOfAnOrphanDecodesNoSelectorTwice(t *testing.T) {
	labels := map[string]any{}
	for i := range mostParts {
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

func TestASelectorWithTooManyPartsIsRefused(t *testing.T) {
	items := func(n int, item any) (list []any) {
		for range n {
			list = append(list, item)
		}
		return list
	}
	absent := map[string]any{"key": "never", "operator": "DoesNotExist"}
	for name, c := range map[string]struct {
		expressions []any
		refused     bool
	}{
		"many requirements":     {items(mostParts, absent), false},
		"too many requirements": {items(mostParts+1, absent), true},
		"many values":           {items(4, map[string]any{"key": "app", "operator": "In", "values": items(mostParts/4, "cats")}), false},
		"too many values":       {items(1, map[string]any{"key": "app", "operator": "In", "values": items(mostParts+1, "cats")}), true},
	} {
		p := selecting("tenant", "p", "")
		p.SetKind("Thing")
		p.Object["spec"] = map[string]any{"selector": map[string]any{"matchExpressions": c.expressions}}
		if _, err := Selector(p, false); (err != nil) != c.refused || c.refused && !strings.Contains(err.Error(), ".spec.selector of Thing tenant/p: a selector may have 100 requirements and 100 values") {
			t.Errorf("%s: got %v", name, err)
		}
		ctl, queued := parentsIn(newShelf(t, p))
		orphan := selecting("tenant", "orphan", "")
		orphan.SetLabels(map[string]string{"app": "cats"})
		ctl.childChanged(orphan, true)
		if got := queued.take(); len(got) == 0 != c.refused {
			t.Errorf("%s: the parents %q are queued", name, got)
		}
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
