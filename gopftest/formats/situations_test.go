package formats_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// situations are all situations, each with a name of its own.
func situations() []situation {
	return slices.Concat(handled(), unfinished(), deletions(), ids(), secrets(), replicaSets(), sizesOfBases(), storages(), kopfs())
}

// examples declares handlers of KopfExamples.
func examples(declare func(x *gopf.Resource[*Example], d *diary)) func(*gopf.Operator, *diary, bool) {
	return func(op *gopf.Operator, d *diary, _ bool) { declare(gopf.For[*Example](op, resource), d) }
}

// created leads to an object that was created with a field.
func created(field string, more ...map[string]any) func(*testing.T, *stage) {
	return func(_ *testing.T, st *stage) { st.create(example(field, more...)) }
}

// updated leads to an object whose field was changed after its creation.
func updated(from, to string, more ...map[string]any) func(*testing.T, *stage) {
	return func(_ *testing.T, st *stage) {
		st.create(example(from, more...))
		st.set(map[string]any{"field": to})
	}
}

// everything declares a handler for each kind of change.
func everything(x *gopf.Resource[*Example], d *diary) {
	x.OnCreate("create_a", d.done("create_a"))
	x.OnUpdate("update_a", d.done("update_a"))
	x.OnField("field_a", "spec.field", d.done("field_a"))
}

func handled() []situation {
	return []situation{{
		name:    "handled",
		declare: examples(everything), drive: created("a"), base: "a",
	}, {
		name:    "handled-update",
		declare: examples(everything), drive: updated("a", "b"), base: "b",
	}, {
		name: "handled-finalizer",
		declare: examples(func(x *gopf.Resource[*Example], d *diary) {
			everything(x, d)
			x.OnDelete("delete_a", d.done("delete_a"))
		}),
		drive: created("a"), base: "a",
	}, {
		name: "handled-daemon",
		declare: examples(func(x *gopf.Resource[*Example], d *diary) {
			everything(x, d)
			x.Daemon("daemon_a", func(ctx context.Context, _ *gopf.Daemon[*Example]) error {
				d.add("daemon_a")
				<-ctx.Done()
				return nil
			})
		}),
		drive: created("a"), resumed: []string{"daemon_a"}, base: "a",
	}, {
		name: "handled-results",
		declare: examples(func(x *gopf.Resource[*Example], d *diary) {
			everything(x, d)
			x.OnCreate("create_b", withResult(d.done("create_b")))
		}),
		drive: created("a"), base: "a",
	}, {
		name: "handled-without-status-subresource",
		kind: withoutStatus(),
		declare: examples(func(x *gopf.Resource[*Example], d *diary) {
			everything(x, d)
			x.OnCreate("create_b", withResult(d.done("create_b")))
		}),
		drive: created("a"), base: "a",
	}, {
		name: "handled-failed",
		declare: examples(func(x *gopf.Resource[*Example], d *diary) {
			x.OnCreate("create_a", func(_ context.Context, ch *change) error {
				d.add("create_a %s", ch.Reason)
				return gopf.Permanent(errors.New("never"))
			})
		}),
		drive: created("a"), base: "a",
	}}
}

// withoutStatus is the usual kind, but its status is a part like any other.
func withoutStatus() *gopftest.Kind {
	return &gopftest.Kind{Group: "kopf.dev", Version: "v1", Plural: "kopfexamples", Kind: "KopfExample", Namespaced: true}
}

// withResult adds a result to a handler.
func withResult(fn gopf.ChangeFunc[*Example]) gopf.ChangeFunc[*Example] {
	return func(ctx context.Context, ch *change) error {
		ch.SetResult(map[string]any{"made": ch.Object.Spec.Field, "count": 3})
		ch.Patch.Set("status.phase", "Ready")
		return fn(ctx, ch)
	}
}
