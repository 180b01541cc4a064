package handling_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

// rival is somebody who changes the object x right before each of the
// operator's writes, until he has had enough. He spares a write that is repeated
// because of him.
type rival struct {
	*space
	resource string
	change   func(n int) fields

	mu   sync.Mutex
	left int // changes that he is still willing to make
	made int
	last write // the one before which he made a change; none if he spared the last one
}

func (r *rival) fate(_ int, w write) mishap {
	r.mu.Lock()
	defer r.mu.Unlock()
	repeated := w.kind == "json" && r.last.kind == "json"
	r.last = write{}
	if repeated || r.left == 0 {
		return ""
	}
	r.last = w
	r.left--
	r.made++
	change := r.change(r.made)
	var subresources []string
	if change["status"] != nil && r.resource == examples {
		subresources = []string{"status"}
	}
	if err := r.TryPatch(r.resource, "x", change, subresources...); err != nil && !apierrors.IsNotFound(err) {
		r.T.Errorf("the rival: %v", err)
	}
	return ""
}

// willing makes the rival go on.
func (r *rival) willing(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = n
}

// rivals are the things that others may change, by their number.
var rivals = map[string]func(n int) fields{
	"labels": func(n int) fields {
		return fields{"metadata": fields{"labels": fields{"rival": fmt.Sprint(n)}}}
	},
	"annotations": func(n int) fields {
		return fields{"metadata": fields{"annotations": fields{"rival.example.com/n": fmt.Sprint(n)}}}
	},
	"status": func(n int) fields { return fields{"status": fields{"rival": fmt.Sprint(n)}} },
	"spec":   func(n int) fields { return fields{"spec": fields{"rival": fmt.Sprint(n)}} },
}

func TestTheLastStateIsHandledWhateverOthersChangeAtTheSameTime(t *testing.T) {
	t.Parallel()
	for what, change := range rivals {
		for _, resource := range []string{examples, plains} {
			t.Run(what+" of "+plural(resource), func(t *testing.T) {
				t.Parallel()
				testRival(t, resource, change)
			})
		}
	}
}

func testRival(t *testing.T, resource string, change func(n int) fields) {
	s, d := newSpace(t), &diary{}
	op := newOperator()
	x := gopf.For[*Example](op, resource)
	x.OnCreate("create_a", result(d, "create_a"))
	x.OnCreate("create_b", func(_ context.Context, c *gopf.Change[*Example]) error {
		if c.Retry == 0 {
			return gopf.RetryAfter(50*time.Millisecond, errors.New("not yet"))
		}
		d.Add("create_b")
		return nil
	})
	for _, id := range []string{"update_a", "update_b"} { // both have to see the last state
		x.OnUpdate(id, func(_ context.Context, c *gopf.Change[*Example]) error {
			c.Patch.MergeStatus(map[string]any{id: essenceOf(c.Raw())})
			return nil
		})
	}
	x.OnDelete("delete_fn", d.handler("delete"))

	r := &rival{space: s, resource: resource, left: 8, change: change}
	o := s.start(op, r.fate)
	s.Create(resource, "x", spec("v1"))
	creations := func() error {
		if d.Count("create_a create v1") != 1 || d.Count("create_b") != 1 {
			return fmt.Errorf("calls: %q", d.All())
		}
		return nil
	}
	kit.Eventually(t, creations)
	settled := func(obj *unstructured.Unstructured) error {
		base := strings.TrimSpace(obj.GetAnnotations()[lastHandled])
		if now := essenceOf(obj.Object); base != now {
			return fmt.Errorf("last handled was %s, but it is %s", base, now)
		}
		return pendingNone(obj)
	}
	s.waitFor(resource, "x", settled)
	r.willing(8)
	s.Patch(resource, "x", fields{"spec": fields{"field": "v2"}})
	obj := s.waitFor(resource, "x", func(obj *unstructured.Unstructured) error {
		for _, id := range []string{"update_a", "update_b"} {
			if seen, _, _ := unstructured.NestedString(obj.Object, "status", id); seen != essenceOf(obj.Object) {
				return fmt.Errorf("the last that %s saw was %s, but it is %s", id, seen, essenceOf(obj.Object))
			}
		}
		return settled(obj)
	})
	if message, _, _ := unstructured.NestedString(obj.Object, "status", "create_a", "message"); message != "v1" {
		t.Errorf("status: %v", obj.Object["status"])
	}
	r.willing(8)
	s.Delete(resource, "x")
	s.waitGone(resource, "x")
	if err := creations(); err != nil {
		t.Error(err)
	}
	if n := d.Count("delete delete v2"); n != 1 {
		t.Errorf("the deletion was handled %d times", n)
	}
	o.staysQuiet(t, d)
	t.Logf("%d writes, %d changes by the rival", len(o.wire.all()), r.made)
}

// essenceOf is what matters of an object, in the order in which it is stored.
func essenceOf(obj map[string]any) string {
	annotations, _, _ := unstructured.NestedMap(obj, "metadata", "annotations")
	for key := range annotations {
		if strings.HasPrefix(key, "kopf.zalando.org/") {
			delete(annotations, key)
		}
	}
	labels, _, _ := unstructured.NestedMap(obj, "metadata", "labels")
	metadata := ""
	for _, part := range []struct {
		name string
		is   fields
	}{{"labels", labels}, {"annotations", annotations}} {
		if len(part.is) > 0 {
			metadata += fmt.Sprintf(",%q:%s", part.name, toJSON(part.is))
		}
	}
	if metadata != "" {
		metadata = `,"metadata":{` + metadata[1:] + "}"
	}
	return `{"spec":` + toJSON(obj["spec"]) + metadata + "}"
}

func toJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// pendingNone tells if the object has records of handlers.
func pendingNone(obj *unstructured.Unstructured) error {
	for key := range obj.GetAnnotations() {
		if strings.HasPrefix(key, "kopf.zalando.org/") && key != lastHandled && key != bound {
			return fmt.Errorf("there are records: %q", obj.GetAnnotations())
		}
	}
	return nil
}

func TestEditsAreMadeAnewOnWhatOthersHaveWritten(t *testing.T) {
	t.Parallel()
	for _, resource := range []string{examples, plains} {
		t.Run(plural(resource), func(t *testing.T) {
			t.Parallel()
			s, d := newSpace(t), &diary{}
			op := newOperator()
			gopf.For[*Example](op, resource).OnCreate("create_fn", func(_ context.Context, c *gopf.Change[*Example]) error {
				d.Add("create")
				c.Patch.Edit(func(e *Example) {
					d.Add("edit of %d items", len(e.Spec.Items))
					e.Spec.Items = append(e.Spec.Items, "ours")
					e.Labels["edited"] = "yes"
				})
				c.SetResult("done")
				return nil
			})
			theirs := []string{"theirs1", "theirs2", "theirs3"}
			r := &rival{space: s, resource: resource, left: 3, change: func(n int) fields {
				return fields{"spec": fields{"items": theirs[:n], "unknown": "to the type"}}
			}}
			s.start(op, r.fate)
			s.Create(resource, "x", spec("a"))
			obj := s.waitFor(resource, "x", pendingNoneAnd(func(obj *unstructured.Unstructured) error {
				items, _, _ := unstructured.NestedStringSlice(obj.Object, "spec", "items")
				if want := append(slices.Clone(theirs), "ours"); !slices.Equal(items, want) {
					return fmt.Errorf("the items are %q, want %q", items, want)
				}
				return nil
			}))
			if obj.GetLabels()["edited"] != "yes" {
				t.Errorf("labels: %q", obj.GetLabels())
			}
			if kept, _, _ := unstructured.NestedString(obj.Object, "spec", "unknown"); kept != "to the type" {
				t.Error("a field that the type does not have got lost")
			}
			if d.Count("create") != 1 || d.Count("edit of 3 items") == 0 {
				t.Errorf("calls: %q", d.All())
			}
		})
	}
}

func pendingNoneAnd(check func(*unstructured.Unstructured) error) func(*unstructured.Unstructured) error {
	return func(obj *unstructured.Unstructured) error {
		return errors.Join(check(obj), pendingNone(obj))
	}
}

// The edits of a deletion handler go along with the removal of the finalizer.
func TestEditsThatGoWithTheFinalizerAreMadeAnewToo(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	op := newOperator()
	gopf.For[*Example](op, examples).OnDelete("delete_fn", func(_ context.Context, c *gopf.Change[*Example]) error {
		c.Patch.Edit(func(e *Example) { e.Spec.Items = append(e.Spec.Items, "ours") })
		return nil
	})
	struck := false
	s.start(op, func(_ int, w write) mishap {
		if !struck && strings.Contains(w.body, `{"op":"remove","path":"/metadata/finalizers`) {
			struck = true
			if err := s.TryPatch(examples, "x", fields{"spec": fields{"items": []string{"theirs"}}}); err != nil {
				t.Error(err)
			}
		}
		return ""
	})
	obj := finalizers(others...) // so that it can be looked at afterwards
	obj["spec"] = fields{"field": "a"}
	s.Create(examples, "x", obj)
	s.waitHandled(examples, "x", "a")
	s.Delete(examples, "x")
	after := s.waitFor(examples, "x", hasFinalizers(others...))
	if items, _, _ := unstructured.NestedStringSlice(after.Object, "spec", "items"); !slices.Equal(items, []string{"theirs", "ours"}) {
		t.Errorf("the items are %q, want theirs and ours", items)
	}
}
