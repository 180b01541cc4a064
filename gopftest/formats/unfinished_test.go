package formats_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf"
)

// halves declares one handler that is done and one that is late, for a reason.
func halves(x *gopf.Resource[*Example], d *diary) {
	x.OnCreate("create_a", d.done("create_a"))
	x.OnCreate("create_b", d.late("create_b", 1))
}

func unfinished() []situation {
	updates := examples(func(x *gopf.Resource[*Example], d *diary) {
		x.OnUpdate("update_a", d.done("update_a"))
		x.OnUpdate("update_b", d.late("update_b", 1))
	})
	return []situation{{
		name:    "creation-half",
		declare: examples(halves), drive: created("a"),
		then: []string{"create_b create ->a #1"}, base: "a",
	}, {
		name: "creation-half-changed",
		declare: examples(func(x *gopf.Resource[*Example], d *diary) {
			halves(x, d)
			x.OnUpdate("update_a", d.done("update_a"))
		}),
		drive: updated("a", "b"),
		then:  []string{"create_b create ->b #1"}, afterwards: []string{"update_a update a->b #0"}, base: "b",
	}, {
		name: "creation-half-results",
		declare: examples(func(x *gopf.Resource[*Example], d *diary) {
			x.OnCreate("create_a", withResult(d.done("create_a")))
			x.OnCreate("create_b", withResult(d.late("create_b", 1)))
		}),
		drive: created("a"),
		then:  []string{"create_b create ->a #1"}, base: "a",
	}, {
		name: "creation-retries",
		declare: examples(func(x *gopf.Resource[*Example], d *diary) {
			x.OnCreate("create_a", func(ctx context.Context, ch *change) error {
				after := time.Minute
				if ch.Retry >= 3 {
					after = delay
				}
				return d.retried("create_a", 5, after)(ctx, ch)
			})
		}),
		drive: func(_ *testing.T, st *stage) {
			st.create(example("a"))
			time.Sleep(10 * time.Minute)
		},
		then: []string{"create_a create ->a #4", "create_a create ->a #5"}, base: "a",
	}, {
		name: "creation-failed-and-waiting",
		declare: examples(func(x *gopf.Resource[*Example], d *diary) {
			x.OnCreate("create_a", func(_ context.Context, ch *change) error {
				d.add("create_a %s", ch.Reason)
				return gopf.Permanent(errors.New("never"))
			})
			x.OnCreate("create_b", func(_ context.Context, ch *change) error {
				d.add("create_b %s #%d", ch.Reason, ch.Retry)
				if ch.Retry == 0 {
					return gopf.Wait(delay, "for %s", "something")
				}
				return nil
			})
		}),
		drive: created("a"),
		then:  []string{"create_b create #1"}, base: "a",
	}, {
		name:    "creation-subs",
		declare: examples(subs), drive: created("a"),
		then: subCalls(), base: "a",
	}, {
		name:    "update-half",
		declare: updates, drive: updated("a", "b"),
		then: []string{"update_b update a->b #1"}, base: "b",
	}, {
		// The update handles what the first of the creation handlers did not see.
		name: "update-half-after-changed-creation",
		declare: examples(func(x *gopf.Resource[*Example], d *diary) {
			halves(x, d)
			x.OnUpdate("update_a", d.done("update_a"))
			x.OnUpdate("update_b", d.late("update_b", 1))
		}),
		drive: func(t *testing.T, st *stage) {
			updated("a", "b")(t, st)
			time.Sleep(delay)
		},
		then: []string{"update_b update a->b #1"}, base: "b",
	}, {
		name:    "update-half-large",
		declare: updates, drive: updated("a", "b", map[string]any{"large": strings.Repeat(padding, 3)}),
		then: []string{"update_b update a->b #1"}, base: "b",
	}, {
		name:    "update-half-too-large-for-the-note",
		declare: updates, drive: updated("a", "b", map[string]any{"large": noise(45_000)}),
		then: []string{"update_b update a->b #1"},
	}, {
		name: "fields-half",
		declare: examples(func(x *gopf.Resource[*Example], d *diary) {
			x.OnField("field_a", "spec.field", d.done("field_a"))
			x.OnField("other_a", "spec.other", d.late("other_a", 2))
			x.Field("spec.other").OnUpdate("other_b", d.late("other_b", 1))
		}),
		drive: func(_ *testing.T, st *stage) {
			st.create(example("a", map[string]any{"other": "1"}))
			time.Sleep(3 * delay)
			st.settle()
			st.set(map[string]any{"field": "b", "other": "2"})
		},
		then: []string{"other_a update a->b #1", "other_b update a->b #1", "other_a update a->b #2"}, base: "b",
	}, {
		name: "resume-half",
		declare: examples(func(x *gopf.Resource[*Example], d *diary) {
			x.OnCreate("create_a", d.done("create_a"))
			x.OnResume("resume_a", d.done("resume_a"))
			x.OnResume("resume_b", d.late("resume_b", 1))
		}),
		drive: func(_ *testing.T, st *stage) {
			st.create(example("a"))
			st.stop()
			st.start()
		},
		then: []string{"resume_b resume a->a #1"}, base: "a",
	}}
}

// subCalls are the calls of subs after their delay.
func subCalls() []string {
	return []string{"create_a", "two create ->a #1", "create_b", "three", "y create ->a #1"}
}

// subs declares two handlers with sub-handlers, of which some finish at once.
func subs(x *gopf.Resource[*Example], d *diary) {
	x.OnCreate("create_a", func(_ context.Context, ch *change) error {
		if ch.Retry > 0 {
			d.add("create_a")
		}
		ch.Sub("one", d.done("one"))
		ch.Sub("two", d.late("two", 1))
		return nil
	})
	x.OnCreate("create_b", func(_ context.Context, ch *change) error {
		if ch.Retry > 0 {
			d.add("create_b")
		}
		ch.Sub("three", func(_ context.Context, ch *change) error {
			if ch.Retry > 0 {
				d.add("three")
			}
			ch.Sub("x", d.done("x"))
			ch.Sub("y", d.late("y", 1))
			return nil
		})
		return nil
	})
}
