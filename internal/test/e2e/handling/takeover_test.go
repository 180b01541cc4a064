package handling_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
)

// kopfTime is a moment as Kopf writes it.
func kopfTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000-07:00") }

// kopfRecord is a record of a handler as Kopf writes it, with the defaults for
// what is not given.
func kopfRecord(purpose string, of fields) string {
	record := fields{"started": time.Now().Add(-2 * time.Hour), "purpose": purpose, "retries": 0, "success": false, "failure": false}
	for key, v := range of {
		record[key] = v
	}
	for key, v := range record {
		if at, ok := v.(time.Time); ok {
			record[key] = kopfTime(at)
		}
	}
	raw, err := json.Marshal(record)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func succeeded(purpose string) string {
	return kopfRecord(purpose, fields{"stopped": time.Now().Add(-time.Hour), "retries": 1, "success": true})
}

func delayed(purpose string, until time.Time) string {
	return kopfRecord(purpose, fields{"delayed": until, "retries": 2, "message": "not yet"})
}

// kopfBase is the last-handled configuration as Kopf writes it.
func kopfBase(field string) string { return `{"spec":{"field":"` + field + `"}}` + "\n" }

// long is an id that is stored under another key by old versions of Kopf.
var long = strings.Repeat("x", 47)

func TestWhatKopfHasBegunIsContinued(t *testing.T) {
	t.Parallel()
	soon := time.Now().Add(4 * time.Second)
	for _, test := range []struct {
		name        string
		annotations fields // with the prefix left out
		status      fields
		deleted     bool // the object is being deleted, and waits for the operator
		want        []string
		notBefore   time.Time // for the last call
	}{
		{name: "a creation, one done and one delayed", annotations: fields{
			"create_a": succeeded("create"), "create_b": delayed("create", soon),
		}, want: []string{"create_b create #2"}, notBefore: soon},
		{name: "a creation, touched to be woken", annotations: fields{
			"create_a": succeeded("create"), "create_b": delayed("create", time.Now().Add(-time.Minute)),
			"touch-dummy": "2026-01-01T00:00:10+00:00",
		}, want: []string{"create_b create #2"}},
		{name: "a creation, selected but not begun", annotations: fields{
			"create_a": kopfRecord("create", nil), "create_b": kopfRecord("create", nil),
		}, want: []string{"create_a create #0", "create_b create #0"}},
		{name: "a creation, one failed", annotations: fields{
			"create_a": kopfRecord("create", fields{"stopped": time.Now(), "retries": 5, "failure": true, "message": "never"}),
			"create_b": kopfRecord("create", nil),
		}, want: []string{"create_b create #0"}},
		{name: "a creation, verbose", annotations: fields{
			"create_a": succeeded("create"),
			"create_b": kopfRecord("create", fields{"stopped": nil, "delayed": nil, "message": nil, "subrefs": nil}),
		}, want: []string{"create_b create #0"}},
		{name: "a creation, by an older version, into the status", status: fields{"kopf": fields{"progress": fields{
			"create_a": json.RawMessage(succeeded("create")), "create_b": json.RawMessage(delayed("create", time.Now())),
		}}}, want: []string{"create_b create #2"}},
		{name: "an update", annotations: fields{
			"last-handled-configuration": kopfBase("before"),
			"update_a":                   succeeded("update"), "update_b": delayed("update", time.Now()),
		}, want: []string{"update_b update #2"}},
		{name: "an update, by an older version, with long ids", annotations: fields{
			"last-handled-configuration":          kopfBase("before"),
			"update_a":                            succeeded("update"),
			"update_b":                            succeeded("update"),
			strings.Repeat("x", 39) + "-xRCOAQ":   delayed("update", time.Now()),
			strings.Repeat("x", 39) + "-not-ours": "something else",
		}, want: []string{"long update #2"}},
		{name: "a deletion", deleted: true, annotations: fields{
			"last-handled-configuration": kopfBase("a"),
			"delete_a":                   succeeded("delete"), "delete_b": delayed("delete", time.Now()),
		}, want: []string{"delete_b delete #2"}},
		{name: "a creation that a deletion came over", deleted: true, annotations: fields{
			"create_a": succeeded("create"), "create_b": delayed("create", time.Now()),
		}, want: []string{"delete_a delete #0", "delete_b delete #0"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, d := newSpace(t), &diary{}
			annotations := fields{}
			for name, value := range test.annotations {
				annotations["kopf.zalando.org/"+name] = value
			}
			s.Create(examples, "x", fields{
				"metadata": fields{"annotations": annotations, "finalizers": []any{finalizer}}, "spec": fields{"field": "a"},
			})
			if test.status != nil {
				s.Patch(examples, "x", fields{"status": test.status}, "status")
			}
			if test.deleted {
				s.Delete(examples, "x")
			}
			var last time.Time
			op := newOperator()
			x := gopf.For[*Example](op, examples)
			for id, reason := range map[string]gopf.Reason{"create": gopf.Create, "update": gopf.Update, "delete": gopf.Delete} {
				for _, name := range []string{id + "_a", id + "_b"} {
					x.On(reason, name, func(_ context.Context, c *gopf.Change[*Example]) error {
						last = time.Now()
						d.Add("%s %s #%d", name, c.Reason, c.Retry)
						return nil
					})
				}
			}
			if strings.Contains(test.name, "long") {
				x.OnUpdate(long, func(_ context.Context, c *gopf.Change[*Example]) error {
					d.Add("long %s #%d", c.Reason, c.Retry)
					return nil
				})
			}
			o := s.start(op, nil)
			if test.deleted {
				s.waitGone(examples, "x")
			} else {
				if foreign := "kopf.zalando.org/" + strings.Repeat("x", 39) + "-not-ours"; annotations[foreign] != nil {
					s.waitFor(examples, "x", annotated(map[string]string{lastHandled: kopfBase("a"), foreign: "something else"}))
				} else {
					s.waitHandled(examples, "x", "a")
				}
				s.waitFor(examples, "x", func(obj *unstructured.Unstructured) error {
					if left := statusProgress(obj); len(left) > 0 {
						return fmt.Errorf("records are left in the status: %v", left)
					}
					return nil
				})
			}
			o.staysQuiet(t, d)
			d.Check(t, test.want...)
			if last.Before(test.notBefore) {
				t.Errorf("called at %v, want it not before %v", last, test.notBefore)
			}
		})
	}
}

func TestSubHandlersThatKopfHasBegunAreContinued(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	s.Create(examples, "x", fields{"metadata": fields{"annotations": fields{
		"kopf.zalando.org/create_fn": kopfRecord("create", fields{
			"delayed": time.Now().Add(-time.Second), "retries": 2, "message": "None",
			"subrefs": []string{"create_fn/gone", "create_fn/sub1", "create_fn/sub2", "create_fn/sub2/deep"},
		}),
		"kopf.zalando.org/create_fn.sub1": succeeded("create"),
		"kopf.zalando.org/create_fn.sub2": kopfRecord("create", fields{
			"delayed": time.Now().Add(-time.Second), "retries": 1, "message": "None", "subrefs": []string{"create_fn/sub2/deep"},
		}),
		"kopf.zalando.org/create_fn.sub2.deep": delayed("create", time.Now().Add(2*time.Second)),
		"kopf.zalando.org/create_fn.gone":      succeeded("create"), // by a sub-handler that is not declared any more
	}}, "spec": fields{"field": "a"}})
	op := newOperator()
	gopf.For[*Example](op, examples).OnCreate("create_fn", func(_ context.Context, c *gopf.Change[*Example]) error {
		c.Sub("sub1", d.handler("sub1"))
		c.Sub("sub2", func(_ context.Context, c *gopf.Change[*Example]) error {
			c.Sub("deep", func(_ context.Context, c *gopf.Change[*Example]) error {
				d.Add("deep #%d", c.Retry)
				return nil
			})
			return nil
		})
		return nil
	})
	o := s.start(op, nil)
	s.waitHandled(examples, "x", "a")
	o.staysQuiet(t, d)
	d.Check(t, "deep #2")
}
