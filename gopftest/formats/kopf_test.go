package formats_test

import "gopf.dev/gopf"

// kopfs are situations that Kopf has left. There is no code that makes them:
// the records in testdata/kopf have the form of its transcripts.
func kopfs() []situation {
	both := examples(func(x *gopf.Resource[*Example], d *diary) {
		halves(x, d)
		x.OnUpdate("update_a", d.done("update_a"))
		x.OnDelete("delete_a", d.done("delete_a"))
		x.OnDelete("delete_b", d.late("delete_b", 1))
	})
	return []situation{
		{name: "kopf-handled", declare: both, base: "a"},
		{name: "kopf-creation-half", declare: both, writes: 1, then: []string{"create_b create ->a #1"}, base: "a"},
		{name: "kopf-creation-half-in-status", declare: both, writes: 1, then: []string{"create_b create ->a #1"}, base: "a"},
		{name: "kopf-creation-subs", declare: examples(subs), writes: 1, then: subCalls(), base: "a"},
		{name: "kopf-ids-long", declare: examples(func(x *gopf.Resource[*Example], d *diary) {
			x.OnCreate("create_a_very_long_handler_name/with_sub_handlers/and_sub_sub_handlers/spec.some.field", d.done("long"))
			x.OnCreate("create_b", d.late("create_b", 1))
		}), writes: 1, then: []string{"create_b create ->a #1"}, base: "a"},
		{name: "kopf-deletion-half", declare: both, writes: 1, then: []string{"delete_b delete a->a #1"}, base: gone},
	}
}
