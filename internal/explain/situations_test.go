package explain_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metalabels "k8s.io/apimachinery/pkg/labels"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/childwatch"
	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/explain"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/process"
	"gopf.dev/gopf/internal/reconcile"
	"gopf.dev/gopf/internal/recorder"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/storage"
)

// situation is an object with handlers, and the line that names its cause.
type situation struct {
	name     string
	handlers handler.Set
	daemons  []*daemon.Spec
	owning   handler.Set // reconcile handlers
	metadata string      // JSON members of the metadata, besides the name
	spec     string      // default: {"size":2}
	known    string      // the spec that was handled last; "" means that the object is new
	records  map[string]string
	elsewhere,
	unseen bool
	restarted bool
	next      process.Next
	want      string
}

func of(id string, reasons ...cause.Reason) *handler.Handler {
	h := &handler.Handler{ID: id, Where: "op.go:1", Reasons: map[cause.Reason]bool{}}
	for _, r := range reasons {
		h.Reasons[r] = true
		h.Mandatory = h.Mandatory || r == cause.Delete
	}
	return h
}

func with(h *handler.Handler, change func(*handler.Handler)) *handler.Handler {
	change(h)
	return h
}

func equal(v any) (handler.Matcher, string) { return handler.Equal(v), fmt.Sprintf("%q", v) }

// filters has all filters that do not match the object of [filtered], with the cause.
func filters() map[string]struct {
	add  func(*handler.Handler)
	want string
} {
	type filter = struct {
		add  func(*handler.Handler)
		want string
	}
	key := func(name string, m handler.Matcher, want string) []handler.Key {
		return []handler.Key{{Name: name, Match: m, Want: want}}
	}
	prod, text := equal("prod")
	all := map[string]filter{
		"label value":       {func(h *handler.Handler) { h.Criteria.Labels = key("tier", prod, text) }, `not called: label tier is "dev", the handler requires "prod"`},
		"label absent":      {func(h *handler.Handler) { h.Criteria.Labels = key("tier", handler.Absent, "absent") }, `not called: label tier is "dev", the handler requires absent`},
		"label present":     {func(h *handler.Handler) { h.Criteria.Labels = key("team", handler.Present, "present") }, `not called: label team is absent, the handler requires present`},
		"annotation value":  {func(h *handler.Handler) { h.Criteria.Annotations = key("note", prod, text) }, `not called: annotation note is "dev", the handler requires "prod"`},
		"annotation absent": {func(h *handler.Handler) { h.Criteria.Annotations = key("note", handler.Absent, "absent") }, `not called: annotation note is "dev", the handler requires absent`},
		"annotation there":  {func(h *handler.Handler) { h.Criteria.Annotations = key("more", handler.Present, "present") }, `not called: annotation more is absent, the handler requires present`},
		"field value": {func(h *handler.Handler) {
			h.Criteria.Fields = []handler.Field{{Path: []string{"spec", "size"}, Match: handler.Equal(int64(9)), Want: "9"}}
		}, "not called: spec.size is 2, the handler requires 9"},
		"field present": {func(h *handler.Handler) {
			h.Criteria.Fields = []handler.Field{{Path: []string{"spec", "disk"}, Match: handler.Present, Want: "present"}}
		}, "not called: spec.disk is absent, the handler requires present"},
		"selector": {func(h *handler.Handler) {
			h.Select = "tier=prod"
			h.Criteria.Selector, _ = metalabels.Parse("tier=prod")
		}, `not called: the labels do not match the selector "tier=prod"`},
		"function": {func(h *handler.Handler) {
			h.When = []func(*handler.Request) bool{func(*handler.Request) bool { return false }}
			h.WhenAt = []string{"op.go:9"}
		}, "not called: the function of When at op.go:9 returned false"},
		"changed field": {func(h *handler.Handler) {
			h.Change = &handler.Change{Path: []string{"spec", "disk"}, Value: handler.Equal("big")}
			h.Change.Want.Value = `"big"`
		}, "spec.disk "},
		"changed value": {func(h *handler.Handler) {
			h.Change = &handler.Change{Path: []string{"spec", "size"}, Old: handler.Any, New: handler.Equal(int64(9))}
			h.Change.Want.New = "9"
		}, "spec.size is 2, the handler requires 9"},
	}
	return all
}

const labeled = `"labels":{"tier":"dev"},"annotations":{"note":"dev"}`

// situations returns all situations: each filter with each reason, and the others.
func situations() (all []situation) {
	for name, f := range filters() {
		for _, reason := range []cause.Reason{cause.Create, cause.Update, cause.Delete} {
			s := situation{name: string(reason) + " " + name, handlers: handler.Set{with(of("h", reason), f.add)}, metadata: labeled, next: process.NextUnmatched, want: f.want}
			if name == "changed value" { // the change is handled, although no handler is called
				s.next = process.NextFinish
			}
			switch reason {
			case cause.Update:
				s.known = `{"size":1}`
			case cause.Delete:
				s.known, s.metadata, s.next = `{"size":2}`, labeled+`,"finalizers":["f"],"deletionTimestamp":"2000-01-01T00:00:00Z"`, process.NextRemoveFinalizer
			}
			all = append(all, s)
		}
	}
	update := handler.Set{of("h", cause.Update)}
	failing := func(retries int, more string) map[string]string {
		return map[string]string{"h": fmt.Sprintf(`{"started":"1999-12-31T23:59:00.000000","purpose":"update","retries":%d%s}`, retries, more)}
	}
	tail := &daemon.Spec{Handler: with(of("tail"), func(h *handler.Handler) { h.Mandatory = true })}
	tick := &daemon.Spec{Handler: with(of("tick"), filters()["label value"].add), Timer: true}
	const guarded, deleting = `"finalizers":["f"]`, `"finalizers":["f"],"deletionTimestamp":"2000-01-01T00:00:00Z"`
	return append(all,
		situation{name: "new", handlers: handler.Set{of("h", cause.Create)}, next: process.NextCall, want: "create: calls h now"},
		situation{name: "changed", handlers: update, known: `{"size":1}`, next: process.NextCall, want: "update: calls h now"},
		situation{name: "diff", handlers: update, known: `{"size":1}`, next: process.NextCall, want: "change spec.size  1 → 2"},
		situation{name: "unchanged", handlers: update, known: `{"size":2}`, next: process.NextNothing, want: "handled, and unchanged since"},
		situation{name: "other reason", handlers: update, next: process.NextFinish, want: "not called: it is declared for update, the reason is create"},
		situation{name: "resume", handlers: handler.Set{of("h", cause.Resume)}, known: `{"size":2}`, next: process.NextNothing, want: "called when the operator starts again"},
		situation{name: "retry", handlers: update, known: `{"size":1}`, records: failing(3, `,"delayed":"2000-01-01T00:00:38.000000","message":"refused"`), next: process.NextWait, want: "retries in 38s, after 3 attempts: refused"},
		situation{name: "waits", handlers: update, known: `{"size":1}`, records: failing(1, `,"delayed":"2000-01-01T00:01:00.000000"`), next: process.NextWait, want: "update: waits for h"},
		situation{name: "due again", handlers: update, known: `{"size":1}`, records: failing(1, `,"delayed":"1999-12-31T23:59:59.000000"`), next: process.NextCall, want: "is called now, after 1 attempt"},
		situation{name: "failed", handlers: handler.Set{of("h", cause.Update), of("i", cause.Update)}, known: `{"size":1}`, records: failing(2, `,"failure":true,"message":"no"`), next: process.NextCall, want: "failed, 2 attempts: no"},
		situation{name: "done", handlers: handler.Set{of("h", cause.Update), of("i", cause.Update)}, known: `{"size":1}`, records: failing(1, `,"success":true`), next: process.NextCall, want: "done, 1 attempt"},
		situation{name: "retries used up", handlers: handler.Set{with(of("h", cause.Update), func(h *handler.Handler) { h.Limits.Retries = handler.Some(2) })}, known: `{"size":1}`, records: failing(2, ""), next: process.NextCall, want: "update: h fails, because its limits are reached"},
		situation{name: "timeout", handlers: handler.Set{with(of("h", cause.Update), func(h *handler.Handler) { h.Limits.Timeout = handler.Some(time.Second) })}, known: `{"size":1}`, records: failing(1, ""), next: process.NextCall, want: "fails: "},
		situation{name: "paused", handlers: update, known: `{"size":1}`, metadata: `"annotations":{"gopf.dev/pause":"moving"}`, next: process.NextPaused, want: "paused by the annotation gopf.dev/pause: moving"},
		situation{name: "paused until", handlers: update, known: `{"size":1}`, metadata: `"annotations":{"gopf.dev/pause":"until 2000-01-01T01:00:00Z"}`, next: process.NextPaused, want: "until 2000-01-01T01:00:00Z"},
		situation{name: "pause ended", handlers: update, known: `{"size":1}`, metadata: `"annotations":{"gopf.dev/pause":"until 1999-01-01T01:00:00Z"}`, next: process.NextCall, want: "calls h now"},
		situation{name: "pause with a typo", handlers: update, known: `{"size":1}`, metadata: `"annotations":{"gopf.dev/pause":"until noon"}`, next: process.NextPaused, want: "so the pause has no end"},
		situation{name: "not unpaused", handlers: update, known: `{"size":1}`, metadata: `"annotations":{"gopf.dev/pause":"false"}`, next: process.NextPaused, want: "remove the annotation to continue"},
		situation{name: "deletion of a paused object", handlers: handler.Set{of("drop", cause.Delete)}, known: `{"size":2}`, metadata: deleting + `,"annotations":{"gopf.dev/pause":"true"}`, next: process.NextCall, want: "delete: calls drop now"},
		situation{name: "finalizer first", handlers: handler.Set{of("drop", cause.Delete)}, known: `{"size":2}`, next: process.NextAddFinalizer, want: "adds its finalizer, and then handles the object"},
		situation{name: "finalizer not needed", handlers: update, known: `{"size":2}`, metadata: guarded, next: process.NextRemoveFinalizer, want: "the operator removes its finalizer"},
		situation{name: "deletion", handlers: handler.Set{of("drop", cause.Delete)}, known: `{"size":2}`, metadata: deleting, next: process.NextCall, want: "waits for the finalizer f (drop)"},
		situation{name: "other finalizers", handlers: handler.Set{of("drop", cause.Delete)}, known: `{"size":2}`, metadata: `"finalizers":["f","other.io/guard"]`, next: process.NextNothing, want: "would wait for the finalizer f (drop) · other.io/guard"},
		situation{name: "only other finalizers", handlers: update, known: `{"size":2}`, metadata: `"finalizers":["other.io/guard"],"deletionTimestamp":"2000-01-01T00:00:00Z"`, next: process.NextNothing, want: "deletion  waits for other.io/guard"},
		situation{name: "other operator", handlers: update, known: `{"size":1}`, elsewhere: true, next: process.NextElsewhere, want: "another operator owns the object"},
		situation{name: "not selected", handlers: update, known: `{"size":1}`, unseen: true, next: process.NextCall, want: `its labels do not match the selector "tier=prod"`},
		situation{name: "daemon applies", daemons: []*daemon.Spec{tail}, metadata: guarded, next: process.NextUnmatched, want: "tail (daemon)  applies"},
		situation{name: "daemon waits for the finalizer", daemons: []*daemon.Spec{tail}, next: process.NextAddFinalizer, want: "tail (daemon)  waits: the object needs the finalizer first"},
		situation{name: "daemon of a paused object", daemons: []*daemon.Spec{tail}, metadata: guarded + `,"annotations":{"gopf.dev/pause":"true"}`, next: process.NextPaused, want: "tail (daemon)  waits: the object is paused"},
		situation{name: "daemon of a deleted object", daemons: []*daemon.Spec{tail}, metadata: deleting, next: process.NextRemoveFinalizer, want: "tail (daemon)  not called: the object is being deleted"},
		situation{name: "timer with a filter", daemons: []*daemon.Spec{tick}, metadata: labeled, next: process.NextUnmatched, want: `tick (timer)  not called: label tier is "dev", the handler requires "prod"`},
	)
}

// reconciled returns the situations of reconcile handlers.
func reconciled(t *testing.T) []situation {
	owning := handler.Set{{ID: "web", Where: "op.go:1", Reconcile: &handler.Reconcile{}}}
	filtered := handler.Set{{ID: "web", Where: "op.go:1", Reconcile: &handler.Reconcile{}, Criteria: handler.Criteria{Labels: []handler.Key{{Name: "tier", Match: handler.Equal("prod"), Want: `"prod"`}}}}}
	record := func(more string) map[string]string {
		return map[string]string{"web": `{"started":"2000-01-01T00:00:00.000000","retries":3,"success":false,"failure":false,"message":"refused"` + more + `}`}
	}
	const delayed = `,"delayed":"2000-01-01T00:00:38.000000"`
	family := func(wave int) map[string]string {
		of := children.Inventory{Owner: "u", Entries: []children.Entry{{Key: children.Key{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "p"}, UID: "00000001", Wave: wave}}}
		text, err := of.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return map[string]string{"gopf.children.web": `{"started":"2000-01-01T00:00:00.000000","purpose":"reconcile","message":"` + text + `"}`}
	}
	deleting := `"finalizers":["f"],"deletionTimestamp":"2000-01-01T00:00:00Z"`
	return []situation{
		{name: "reconcile handler", owning: owning, next: process.NextUnmatched, want: "reconciled by web"},
		{name: "reconcile handler at a start", owning: owning, restarted: true, next: process.NextUnmatched, want: "calls web now"},
		{name: "delayed reconcile handler at a start", owning: owning, restarted: true, records: record(delayed), next: process.NextUnmatched, want: "web (reconcile)  is called now, after 3 attempts: refused"},
		{name: "delayed reconcile handler", owning: owning, records: record(delayed), next: process.NextUnmatched, want: "web (reconcile)  retries in 38s, after 3 attempts, or when the object or a child changes: refused"},
		{name: "waiting for a reconcile handler", owning: owning, records: record(delayed), next: process.NextUnmatched, want: "waits for web"},
		{name: "reconcile handler after its delay", owning: owning, records: record(`,"delayed":"1999-12-31T23:59:59.000000"`), next: process.NextUnmatched, want: "is called now, after 3 attempts"},
		{name: "changed since the reconcile handler", owning: owning, records: record(delayed + `,"purpose":"reconcile 0123456789abcdef"`), next: process.NextUnmatched, want: "calls web now"},
		{name: "failed reconcile handler", owning: owning, records: record(`,"failure":true`), next: process.NextUnmatched, want: "web (reconcile)  failed until the object or a child changes: refused"},
		{name: "reconcile handler of a paused object", owning: owning, metadata: `"annotations":{"gopf.dev/pause":"true"}`, next: process.NextPaused, want: "web (reconcile)  waits: the object is paused"},
		{name: "reconcile handler of another operator", owning: owning, elsewhere: true, next: process.NextElsewhere, want: "web (reconcile)  waits: another operator owns the object"},
		{name: "reconcile handler with a filter", owning: filtered, metadata: labeled, next: process.NextUnmatched, want: `web (reconcile)  not called: label tier is "dev", the handler requires "prod"`},
		{name: "children that are collected", owning: owning, records: family(0), next: process.NextUnmatched, want: "would wait for nothing"},
		{name: "children in an order", owning: owning, records: family(1), metadata: `"finalizers":["f"]`, next: process.NextUnmatched, want: "would wait for the finalizer f (children)"},
		{name: "deletion of children", owning: owning, records: family(1), metadata: deleting, next: process.NextDeleteChildren, want: "the operator deletes the children first"},
	}
}

// report explains a situation.
func (s situation) report(t testing.TB) *explain.Report {
	t.Helper()
	metadata := `{"name":"x","namespace":"ns","uid":"u","resourceVersion":"7"`
	if s.metadata != "" {
		metadata += "," + s.metadata
	}
	if s.spec == "" {
		s.spec = `{"size":2}`
	}
	body, err := object.Parse([]byte(`{"apiVersion":"v1","kind":"Thing","metadata":` + metadata + `},"spec":` + s.spec + `}`))
	if err != nil {
		t.Fatal(err)
	}
	fields := body.Map()
	annotations, _ := fields["metadata"].(map[string]any)["annotations"].(map[string]any)
	if annotations == nil {
		annotations = map[string]any{}
		fields["metadata"].(map[string]any)["annotations"] = annotations
	}
	if s.known != "" {
		base := `{"spec":` + s.known
		if strings.Contains(s.metadata, labeled) {
			base += `,"metadata":{` + labeled + `}`
		}
		annotations["kopf.zalando.org/last-handled-configuration"] = base + "}\n"
	}
	for id, record := range s.records {
		annotations["kopf.zalando.org/"+id] = record
	}
	if body, err = object.FromMap(fields); err != nil {
		t.Fatal(err)
	}
	p := &process.Processor{
		Resource: kind.Info{Version: "v1", Plural: "things", Kind: "Thing", Namespaced: true}, Handlers: s.handlers, Fields: s.handlers.Fields(),
		Log: slog.New(slog.DiscardHandler), Post: func(recorder.Event) {}, Stopping: make(chan struct{}),
		Config: process.Config{Progress: storage.DefaultProgress(), Base: storage.DefaultBase(), Finalizer: "f", DefaultBackoff: time.Minute,
			Lifecycle: func(due []handler.Due) []handler.Due { return due }},
	}
	timers := map[*handler.Handler]bool{}
	if len(s.daemons) > 0 {
		p.Daemons = daemon.NewSet(daemon.Config{Specs: s.daemons})
		for _, d := range s.daemons {
			timers[d.Handler] = d.Timer
		}
	}
	if s.elsewhere {
		p.HandedOver = func(*object.Body) bool { return true }
	}
	if len(s.owning) > 0 {
		p.Reconcile = &process.Reconcile{Handlers: s.owning, Runner: &reconcile.Runner{Store: childwatch.NewStore("op", func() uint64 { return 0 }), Name: "op"}}
	}
	outlook, err := p.Outlook(t.Context(), body, s.restarted)
	if err != nil {
		t.Fatal(err)
	}
	return explain.Of(explain.Subject{Body: body, Resource: p.Resource, Outlook: outlook, Finalizer: "f", Timers: timers, Selector: "tier=prod", Selected: !s.unseen})
}

func TestEachSituationHasTheLineWithItsCause(t *testing.T) {
	all := append(situations(), reconciled(t)...)
	if len(all) < 60 {
		t.Errorf("there are %d situations, want at least 60", len(all))
	}
	synctest.Test(t, func(t *testing.T) { // the time is 2000-01-01T00:00:00Z
		for _, s := range all {
			r := s.report(t)
			var out strings.Builder
			if err := r.Write(&out, time.Now()); err != nil {
				t.Fatal(err)
			}
			if process.Next(r.Next) != s.next || !strings.Contains(out.String(), s.want) {
				t.Errorf("%s: the next step is %s, want %s; the text is\n%swant the line %q", s.name, r.Next, s.next, &out, s.want)
			}
		}
	})
}
