package process

import (
	"context"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/logs"
	"gopf.dev/gopf/storage"
)

// briefly is an API server that accepts everything and returns only versions.
type briefly struct {
	*cluster
	patches int
}

func (b *briefly) PatchBriefly(context.Context, kube.Target, types.PatchType, []byte, ...kube.Param) (string, error) {
	b.patches++
	return "2", nil
}

// newObject returns a function that handles a new object, from its bytes to the write of its
// base.
func newObject(t testing.TB, inStatus bool) (handle func()) { return newObjectWith(t, inStatus, nil) }

// newObjectWith is newObject with a trail.
func newObjectWith(t testing.TB, inStatus bool, trail Trail) (handle func()) {
	return newObjectBy(t, inStatus, func(p *Processor) { p.Trail = trail })
}

// newObjectBy is newObject with a processor that setup changes.
func newObjectBy(t testing.TB, inStatus bool, setup func(*Processor)) (handle func()) {
	var alarms []time.Duration
	var calls int
	api := &briefly{cluster: newCluster()}
	p := newKind(api.cluster, &alarms, on(cause.Create, &calls))
	p.API = api
	setup(p)
	if inStatus {
		p.Config.Progress, p.Config.Base = stateOf("things").Storages(true)
	}
	p.Resource = kind.Info{Group: "example.com", Version: "v1", Plural: "things", Kind: "Thing", Namespaced: true, Subresources: []string{"status"}}
	raw := []byte(`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"x","namespace":"ns","uid":"u","resourceVersion":"1",
		"labels":{"app":"x"}},"spec":{"size":1,"items":[{"name":"a","value":"1"},{"name":"b","value":"2"}]}}`)
	return func() {
		body, err := object.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		calls, api.patches = 0, 0
		event := &Event{Type: "ADDED", Body: body}
		p.Turn(t.Context(), NewMemory(event), Occasion{Event: event})
		if calls != 1 || api.patches != 1 {
			t.Fatalf("%d calls, %d writes", calls, api.patches)
		}
	}
}

// TestHandlingANewObjectAllocatesLittle guards against work that is done for each object
// although few objects need it. The limits have room for the race detector and for other versions of Go.
func TestHandlingANewObjectAllocatesLittle(t *testing.T) {
	for inStatus, most := range map[bool]float64{false: 225, true: 205} {
		if n := testing.AllocsPerRun(100, newObject(t, inStatus)); n > most {
			t.Errorf("state in the status %t: %.0f allocations", inStatus, n)
		}
	}
	if n := testing.AllocsPerRun(100, newLargeObject(t)); n > 340 {
		t.Errorf("a large object: %.0f allocations", n)
	}
}

// entry is an item of the specification of a large object.
type entry struct{ Name, Value string }

// largeObject returns an object of 2 KB. status is the JSON of its status;
// it may be empty.
func largeObject(status string) []byte {
	items := strings.Repeat(`{"name":"entry","value":"volume1 claim2 namespace3 replica4 image5 port6 secret7 mount8 probe9"},`, 10)
	raw := `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"creationTimestamp":"2026-01-01T00:00:00Z","generation":1,"labels":{"app":"bench"},` +
		`"managedFields":[{"apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{".":{},"f:group":{},"f:payload":{},"f:size":{},"f:stamp":{}}},` +
		`"manager":"bench","operation":"Update","time":"2026-01-01T00:00:00Z"}],"name":"o-0000001","namespace":"ns","resourceVersion":"1","uid":"00000000-0000-4000-8000-000000000001"},` +
		`"spec":{"group":"a","payload":[` + strings.TrimSuffix(items, ",") + `],"size":1,"stamp":0}`
	if status != "" {
		raw += `,"status":` + status
	}
	return []byte(raw + "}")
}

// newLargeObject is like newObject with the state in the status. The object has 2 KB, its
// handler decodes it and has a result, and log lines are formatted.
func newLargeObject(t testing.TB) (handle func()) {
	var alarms []time.Duration
	api := &briefly{cluster: newCluster()}
	p := newKind(api.cluster, &alarms, &handler.Handler{ID: "create", Reasons: map[cause.Reason]bool{cause.Create: true}, Call: func(_ context.Context, r *handler.Request) error {
		var thing struct {
			metav1.TypeMeta
			metav1.ObjectMeta `json:"metadata"`
			Spec              struct{ Payload []entry }
		}
		err := r.Body.Decode(&thing)
		r.Result = map[string]any{"message": "created", "size": len(thing.Spec.Payload)}
		return err
	}})
	p.API, p.Log = api, slog.New(logs.New(io.Discard, logs.Options{}))
	p.Config.Progress, p.Config.Base = stateOf("things").Storages(true)
	p.Config.KeepsStatus = func(map[string]any) bool { return true }
	p.Resource = kind.Info{Group: "example.com", Version: "v1", Plural: "things", Kind: "Thing", Namespaced: true, Subresources: []string{"status"}}
	raw := largeObject("")
	return func() {
		body, err := object.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		api.patches = 0
		event := &Event{Type: "ADDED", Body: body}
		p.Turn(t.Context(), NewMemory(event), Occasion{Event: event})
		if api.patches != 1 {
			t.Fatalf("%d writes", api.patches)
		}
	}
}

func BenchmarkNewLargeObject(b *testing.B) {
	handle := newLargeObject(b)
	b.ReportAllocs()
	for b.Loop() {
		handle()
	}
}

func BenchmarkNewObject(b *testing.B) {
	for name, inStatus := range map[string]bool{"annotations": false, "status": true} {
		b.Run(name, func(b *testing.B) {
			handle := newObject(b, inStatus)
			b.ReportAllocs()
			for b.Loop() {
				handle()
			}
		})
	}
}

// BenchmarkResumedObject handles an unchanged object at startup. With comparing, its base
// is decoded and compared.
func BenchmarkResumedObject(b *testing.B) {
	for name, compare := range map[string]bool{"by bytes": false, "comparing": true} {
		b.Run(name, func(b *testing.B) {
			var alarms []time.Duration
			var calls int
			p := newKind(newCluster(), &alarms, on(cause.Resume, &calls))
			p.Config.Progress, p.Config.Base = stateOf("things").Storages(true)
			fresh, err := object.Parse(largeObject(""))
			if err != nil {
				b.Fatal(err)
			}
			text, err := storage.EncodeEssence(p.essence(fresh))
			if err != nil {
				b.Fatal(err)
			}
			raw := largeObject(`{"things":{"last-handled-configuration":` + strconv.Quote(text) + `}}`)
			if compare {
				p.bytesTestOnce.Do(func() {}) // without a test
			}
			b.ReportAllocs()
			for b.Loop() {
				body, err := object.Parse(raw)
				if err != nil {
					b.Fatal(err)
				}
				event := &Event{Body: body}
				calls = 0
				p.Turn(b.Context(), NewMemory(event), Occasion{Event: event})
				if calls != 1 || len(alarms) > 0 {
					b.Fatalf("%d calls, alarms %v", calls, alarms)
				}
			}
		})
	}
}
