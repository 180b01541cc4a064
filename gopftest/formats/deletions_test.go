package formats_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf"
)

func deletions() []situation {
	deleted := func(_ *testing.T, st *stage) {
		st.create(example("a"))
		st.delete()
	}
	return []situation{{
		name: "deletion-half",
		declare: examples(func(x *gopf.Resource[*Example], d *diary) {
			x.OnCreate("create_a", d.done("create_a"))
			x.OnDelete("delete_a", d.done("delete_a"))
			x.OnDelete("delete_b", d.late("delete_b", 1))
		}),
		drive: deleted,
		then:  []string{"delete_b delete a->a #1"}, base: gone,
	}, {
		name: "deletion-waits-for-daemon",
		declare: examples(func(x *gopf.Resource[*Example], d *diary) {
			x.OnCreate("create_a", d.done("create_a"))
			x.Daemon("daemon_a", func(ctx context.Context, _ *gopf.Daemon[*Example]) error {
				d.add("daemon_a")
				<-ctx.Done()
				time.Sleep(delay)
				return nil
			})
		}),
		drive: deleted,
		// Daemons do not outlive their process, and are not started for deletions.
		writes: 1, base: gone,
	}, {
		name: "deletion-half-after-daemon",
		declare: examples(func(x *gopf.Resource[*Example], d *diary) {
			x.OnDelete("delete_a", d.done("delete_a"))
			x.OnDelete("delete_b", d.late("delete_b", 2))
			x.Daemon("daemon_a", func(ctx context.Context, _ *gopf.Daemon[*Example]) error {
				d.add("daemon_a")
				<-ctx.Done()
				return nil
			})
		}),
		drive: deleted,
		then:  []string{"delete_b delete a->a #1", "delete_b delete a->a #2"}, base: gone,
	}}
}

func ids() []situation {
	long := strings.Repeat("a-very-long-name_", 6) + "end"
	return []situation{{
		name: "ids-long",
		declare: examples(func(x *gopf.Resource[*Example], d *diary) {
			x.OnCreate("done/"+long, d.done("done"))
			x.OnCreate("late/"+long, d.late("late", 1))
			x.OnCreate("late/<short>.x", d.late("short", 1))
		}),
		drive: created("a"),
		then:  []string{"late create ->a #1", "short create ->a #1"}, base: "a",
	}, {
		name: "ids-formerly",
		declare: func(op *gopf.Operator, d *diary, restarted bool) {
			x := gopf.For[*Example](op, resource)
			if !restarted {
				halves(x, d)
				return
			}
			x.OnCreate("made_a", d.done("create_a"), gopf.Formerly("create_a"))
			x.OnCreate("made_b", d.late("create_b", 1), gopf.Formerly("create_b"))
		},
		drive: created("a"), writes: 1,
		then: []string{"create_b create ->a #1"}, base: "a",
	}}
}
