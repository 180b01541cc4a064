package process

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/index"
	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/recorder"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/storage"
)

// cluster is an API server with one object. It accepts merge patches unless broken is
// set.
type cluster struct {
	object  map[string]any
	version int
	writes  int
	broken  error
}

func (c *cluster) Get(context.Context, kube.Target) (*object.Body, error) { return c.body(), c.broken }

func (c *cluster) Patch(_ context.Context, _ kube.Target, _ types.PatchType, raw []byte, _ ...kube.Param) (*object.Body, error) {
	c.writes++
	if c.broken != nil {
		return nil, c.broken
	}
	parsed, err := object.Parse(raw)
	if err != nil {
		return nil, err
	}
	patch.Apply(c.object, parsed.Map())
	c.version++
	return c.body(), nil
}

func (c *cluster) body() *object.Body {
	fields := jsonvalue.Clone(c.object).(map[string]any)
	fields["metadata"].(map[string]any)["resourceVersion"] = string(rune('0' + c.version))
	b, err := object.FromMap(fields)
	if err != nil {
		panic(err)
	}
	return b
}

func newKind(c *cluster, alarms *[]time.Duration, handlers ...*handler.Handler) *Processor {
	return &Processor{
		Resource: kind.Info{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true},
		Handlers: handlers, API: c, Log: slog.New(slog.DiscardHandler), Stopping: make(chan struct{}),
		Alarm: func(_ string, at time.Time) { *alarms = append(*alarms, time.Until(at)) },
		Post:  func(recorder.Event) {},
		Config: Config{
			Progress: storage.DefaultProgress(), Base: storage.DefaultBase(), Finalizer: "f",
			Lifecycle:      func(due []handler.Due) []handler.Due { return due },
			DefaultBackoff: time.Minute, ErrorDelays: []time.Duration{time.Second, 2 * time.Second}, WriteGrace: time.Second,
		},
	}
}

func newCluster() *cluster {
	return &cluster{version: 1, object: map[string]any{
		"metadata": map[string]any{"name": "x", "namespace": "ns", "uid": "u"}, "data": map[string]any{"a": "b"},
	}}
}

func on(reason cause.Reason, calls *int) *handler.Handler {
	return &handler.Handler{ID: "fn", Reasons: map[cause.Reason]bool{reason: true}, Call: func(context.Context, *handler.Request) error {
		*calls++
		return nil
	}}
}

func TestAnIdleObjectKeepsNoBody(t *testing.T) {
	var calls int
	var alarms []time.Duration
	c := newCluster()
	k := newKind(c, &alarms, on(cause.Create, &calls))
	event := &Event{Type: "ADDED", Body: c.body()}
	m := NewMemory(event)
	k.Turn(t.Context(), m, Occasion{Event: event})
	if calls != 1 || c.writes != 1 || m.Waiting() || len(alarms) > 0 {
		t.Errorf("%d calls, %d writes, waiting %v, alarms %v", calls, c.writes, m.Waiting(), alarms)
	}
	// The watch event of its own write is ignored.
	k.Turn(t.Context(), m, Occasion{Event: &Event{Type: "MODIFIED", Body: c.body()}})
	k.Turn(t.Context(), m, Occasion{Event: event})
	k.Turn(t.Context(), m, Occasion{Alarm: true})
	if calls != 1 || c.writes != 1 {
		t.Errorf("after the watch event: %d calls, %d writes", calls, c.writes)
	}
}

func TestAFailedWriteIsRetriedWithoutCallingTheHandlerAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls int
		var alarms []time.Duration
		c := newCluster()
		c.broken = errors.New("out of order")
		k := newKind(c, &alarms, on(cause.Create, &calls))
		event := &Event{Type: "ADDED", Body: c.body()}
		m := NewMemory(event)
		k.Turn(t.Context(), m, Occasion{Event: event})
		for range 3 {
			time.Sleep(alarms[len(alarms)-1])
			k.Turn(t.Context(), m, Occasion{Alarm: true})
		}
		if calls != 1 || c.writes != 4 {
			t.Errorf("%d calls and %d writes, want 1 and 4", calls, c.writes)
		}
		if alarms[0] != time.Second || alarms[1] != 2*time.Second || alarms[3] != 2*time.Second {
			t.Errorf("delays do not grow as configured: %v", alarms)
		}
		// A known state does not end the backoff, but a new one does.
		k.Turn(t.Context(), m, Occasion{Event: &Event{Type: "MODIFIED", Body: c.body()}})
		if c.writes != 4 {
			t.Error("an event with a known state ended the backoff")
		}
		c.version++
		k.Turn(t.Context(), m, Occasion{Event: &Event{Type: "MODIFIED", Body: c.body()}})
		if calls != 1 || c.writes != 5 {
			t.Errorf("after a new state: %d calls and %d writes, want 1 and 5", calls, c.writes)
		}
		c.broken = nil
		time.Sleep(2 * time.Second)
		k.Turn(t.Context(), m, Occasion{Alarm: true})
		if calls != 1 || m.Waiting() {
			t.Errorf("after the repair: %d calls, waiting %v", calls, m.Waiting())
		}
	})
}

func TestANotFoundWriteIsRetriedUntilTheDeletionEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls int
		var alarms []time.Duration
		c := newCluster()
		c.broken = apierrors.NewNotFound(schema.GroupResource{}, "x")
		k := newKind(c, &alarms, on(cause.Create, &calls))
		event := &Event{Type: "ADDED", Body: c.body()}
		m := NewMemory(event)
		k.Turn(t.Context(), m, Occasion{Event: event})
		k.Turn(t.Context(), m, Occasion{Event: &Event{Type: "MODIFIED", Body: c.body()}}) // stale if the object is gone
		if c.writes != 1 {
			t.Errorf("got %d writes to a missing object, want 1", c.writes)
		}
		time.Sleep(alarms[len(alarms)-1])
		k.Turn(t.Context(), m, Occasion{Alarm: true})
		c.broken = nil // the object was not gone
		time.Sleep(alarms[len(alarms)-1])
		k.Turn(t.Context(), m, Occasion{Alarm: true})
		if calls != 1 || c.writes != 3 || m.Waiting() || c.body().Annotations()["kopf.zalando.org/last-handled-configuration"] == "" {
			t.Errorf("%d calls, %d writes, waiting %v, annotations %v", calls, c.writes, m.Waiting(), c.body().Annotations())
		}
		if !k.Turn(t.Context(), m, Occasion{Event: &Event{Type: "DELETED", Body: c.body()}}) {
			t.Error("the deletion event did not end the object")
		}
	})
}

func TestStaleEventsReplaceNeitherPendingStatesNorIndexEntries(t *testing.T) {
	for name, handled := range map[string]bool{"with handlers": true, "only indexed": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var alarms []time.Duration
				c := newCluster()
				fields := index.New[string, any]()
				k := newKind(c, &alarms)
				if handled {
					k.Handlers = handler.Set{{ID: "fn", Reasons: map[cause.Reason]bool{cause.Create: true}, Call: func(context.Context, *handler.Request) error { return nil }}}
					c.broken = errors.New("out of order")
				}
				k.Indexers = &index.Indexers{Functions: []index.Function{{Into: fields, Handler: &handler.Handler{ID: "ix", Call: func(_ context.Context, r *handler.Request) error {
					r.Result = map[string]any{"x": r.Body.Map()["data"].(map[string]any)["a"]}
					return nil
				}}}}}
				older := &Event{Type: "ADDED", Body: c.body()}
				m := NewMemory(older)
				k.Turn(t.Context(), m, Occasion{Event: older}) // writing the handler's outcome fails
				c.object["data"], c.version = map[string]any{"a": "c"}, 3
				newer := &Event{Type: "MODIFIED", Body: c.body()}
				c.object["data"], c.version = map[string]any{"a": "between"}, 2
				old := &Event{Type: "MODIFIED", Body: c.body()}
				c.object["data"], c.version = map[string]any{"a": "c"}, 3
				k.Turn(t.Context(), m, Occasion{Event: newer})
				k.Turn(t.Context(), m, Occasion{Event: old})
				k.Turn(t.Context(), m, Occasion{Event: older})
				if got, _ := fields.One("x"); got != "c" {
					t.Errorf("the index has %v, want c", got)
				}
				if handled && m.busy.body.ResourceVersion != "3" {
					t.Errorf("version %s is pending, want 3", m.busy.body.ResourceVersion)
				}
			})
		})
	}
}

func TestBackoffIsLimitedDuringAnOutage(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		random jitter.Source
		want   time.Duration
	}{
		"of the server":          {apierrors.NewInternalError(errors.New("no leader")), nil, maxOutageDelay},
		"of the network":         {&kube.UnreachableError{Err: errors.New("no route")}, nil, maxOutageDelay},
		"by overload":            {apierrors.NewTooManyRequestsError("later"), nil, maxOutageDelay},
		"no outage, refused":     {apierrors.NewForbidden(schema.GroupResource{}, "x", nil), nil, time.Hour},
		"with jitter":            {apierrors.NewInternalError(errors.New("no leader")), func() float64 { return 0.5 }, maxOutageDelay * 9 / 10},
		"no outage, with jitter": {apierrors.NewForbidden(schema.GroupResource{}, "x", nil), func() float64 { return 0.5 }, 54 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls int
				var alarms []time.Duration
				cl := newCluster()
				cl.broken = c.err
				k := newKind(cl, &alarms, on(cause.Create, &calls))
				k.Config.ErrorDelays, k.Config.Jitter = []time.Duration{time.Second, time.Hour}, c.random
				event := &Event{Type: "ADDED", Body: cl.body()}
				m := NewMemory(event)
				k.Turn(t.Context(), m, Occasion{Event: event})
				for range 2 {
					time.Sleep(alarms[len(alarms)-1])
					k.Turn(t.Context(), m, Occasion{Alarm: true})
				}
				if got := alarms[len(alarms)-1]; got != c.want {
					t.Errorf("the third delay is %v, want %v", got, c.want)
				}
			})
		})
	}
}

func TestRemovedAnnotationsAreRestoredWithBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls int
		var alarms []time.Duration
		c := newCluster()
		k := newKind(c, &alarms, on(cause.Create, &calls))
		event := &Event{Type: "ADDED", Body: c.body()}
		m := NewMemory(event)
		k.Turn(t.Context(), m, Occasion{Event: event})
		for range 3 { // another client reverts the object
			delete(c.object["metadata"].(map[string]any), "annotations")
			c.version++
			k.Turn(t.Context(), m, Occasion{Event: &Event{Type: "MODIFIED", Body: c.body()}})
			if m.Waiting() {
				time.Sleep(alarms[len(alarms)-1])
				k.Turn(t.Context(), m, Occasion{Alarm: true})
			}
		}
		if calls != 4 || len(alarms) != 2 || alarms[1] <= alarms[0] {
			t.Errorf("%d calls with delays %v, want 4 calls and growing delays", calls, alarms)
		}
	})
}

func TestSecretValuesAreNeitherStoredNorLogged(t *testing.T) {
	var calls int
	var alarms []time.Duration
	c := newCluster()
	c.object["data"] = map[string]any{"password": "c2VjcmV0"}
	k := newKind(c, &alarms, on(cause.Create, &calls))
	k.Resource.Kind, k.Resource.Plural = "Secret", "secrets"
	var out strings.Builder
	k.Log = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	k.Handlers = append(k.Handlers, on(cause.Update, &calls))
	event := &Event{Type: "ADDED", Body: c.body()}
	m := NewMemory(event)
	k.Turn(t.Context(), m, Occasion{Event: event})
	base := c.body().Annotations()["kopf.zalando.org/last-handled-configuration"].(string)
	if strings.Contains(base, "c2VjcmV0") || !strings.Contains(base, `"password":"hmac-sha256:`) {
		t.Errorf("the base is %s", base)
	}
	c.object["data"].(map[string]any)["password"] = "b3RoZXI="
	c.version++
	k.Turn(t.Context(), m, Occasion{Event: &Event{Type: "MODIFIED", Body: c.body()}})
	if calls != 2 {
		t.Errorf("%d calls, want one for the creation and one for the change", calls)
	}
	if strings.Contains(out.String(), "c2VjcmV0") || strings.Contains(out.String(), "b3RoZXI=") {
		t.Errorf("the log contains the secret:\n%s", out.String())
	}
}

func TestNewerComparesNumericVersionsAsNumbers(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{"10", "9", true}, {"9", "10", false}, {"9", "9", false}, {"x", "y", true}, {"x", "x", false}} {
		if got := newer(c.a, c.b); got != c.want {
			t.Errorf("%s newer than %s: %v", c.a, c.b, got)
		}
	}
}

func TestAWakeIncludesSubHandlers(t *testing.T) {
	var none *Wake
	some := &Wake{IDs: []string{"a"}}
	for _, c := range []struct {
		w    *Wake
		id   string
		want bool
	}{{none, "a", false}, {&Wake{All: true}, "b", true}, {some, "a", true}, {some, "a/b", true}, {some, "ab", false}, {some.Join(&Wake{IDs: []string{"c"}}), "c", true}, {none.Join(some), "a", true}} {
		if got := c.w.urgent(c.id); got != c.want {
			t.Errorf("%+v, %s: %v", c.w, c.id, got)
		}
	}
}
