package process

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
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
func newObject(t testing.TB, inStatus bool) (handle func()) {
	var alarms []time.Duration
	var calls int
	api := &briefly{cluster: newCluster()}
	p := newKind(api.cluster, &alarms, on(cause.Create, &calls))
	p.API = api
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
// although few objects need it. The limit has some room for other versions of Go.
func TestHandlingANewObjectAllocatesLittle(t *testing.T) {
	for inStatus, most := range map[bool]float64{false: 235, true: 250} {
		if n := testing.AllocsPerRun(100, newObject(t, inStatus)); n > most {
			t.Errorf("state in the status %t: %.0f allocations", inStatus, n)
		}
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
