package reconcile_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/childwatch"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/reconcile"
	"gopf.dev/gopf/internal/tracing"
	"gopf.dev/gopf/kind"
)

var widgets = kind.Info{Group: "example.com", Version: "v1", Plural: "widgets", Kind: "Widget", Namespaced: true}

// bare is an API server that keeps no managedFields. It has one object.
type bare struct {
	apiclient.API
	value   string // "" means that the object does not exist
	version int
	applies int
	traced  int // the applies with the annotation of a trace
}

func (b *bare) body() *object.Body {
	raw := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"default","uid":"w-uid","resourceVersion":"%d",
		"ownerReferences":[{"apiVersion":"v1","kind":"Owner","name":"o","uid":"o-uid","controller":true}]},"spec":{"value":%q}}`, b.version, b.value)
	body, err := object.Parse([]byte(raw))
	if err != nil {
		panic(err)
	}
	return body
}

func (b *bare) set(value string) {
	if b.value != value {
		b.value, b.version = value, b.version+1
	}
}

func (b *bare) Get(_ context.Context, t kube.Target) (*object.Body, error) {
	if b.value == "" {
		return nil, apierrors.NewNotFound(t.Info.GVR().GroupResource(), t.Name)
	}
	return b.body(), nil
}

func (b *bare) Patch(_ context.Context, _ kube.Target, _ types.PatchType, raw []byte, _ ...kube.Param) (*object.Body, error) {
	b.applies++
	if bytes.Contains(raw, []byte(tracing.Annotation)) {
		b.traced++
	}
	b.set("ours")
	return b.body(), nil
}

func TestChildrenWithoutManagedFieldsAreAppliedAgainAtMostOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		server, marks, traces := &bare{}, uint64(0), 0
		store := childwatch.NewStore("me", func() uint64 { marks++; return marks })
		runner := &reconcile.Runner{Objects: &apiclient.Objects{API: server}, Store: store, Name: "me"}
		inventory, fights := &children.Inventory{Owner: "o-uid"}, &reconcile.Fights{}
		run := func() reconcile.Result {
			w := &handler.Wanted{Info: widgets, Fields: map[string]any{
				"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "w"}, "spec": map[string]any{"value": "ours"},
			}}
			w.APIVersion, w.Kind, w.Namespace, w.Name = "example.com/v1", "Widget", "default", "w"
			traces++
			parent := fmt.Sprintf("00-%032x-%016x-01", traces, traces)
			result, err := runner.Run(tracing.With(t.Context(), func() tracing.Span { return tracing.Span{Parent: parent} }), reconcile.Task{
				Owner:     reconcile.Owner{Identity: object.Identity{Namespace: "default", Name: "o", UID: "o-uid"}},
				Inventory: inventory, Wanted: []*handler.Wanted{w}, Fights: fights, Log: slog.New(slog.NewTextHandler(&log, nil)), Prune: true, Alone: true,
			})
			if err != nil || len(result.Problems) > 0 {
				t.Fatal(err, result.Problems)
			}
			inventory = result.Inventory
			return result
		}
		check := func(when string, applies int, again time.Duration) {
			t.Helper()
			if result := run(); server.applies != applies || result.Again != again {
				t.Errorf("%s: %d applies, and the next after %v; want %d and %v", when, server.applies, result.Again, applies, again)
			}
		}
		edit := func(value string) {
			server.set(value)
			child, err := store.Read(widgets, server.body())
			if err != nil {
				t.Fatal(err)
			}
			store.Sent(child.Key, child) // as an event would
		}
		check("at first", 1, 0)
		check("unchanged", 1, 0)
		time.Sleep(10 * time.Second)
		edit("theirs")
		check("a change within the minute", 1, 50*time.Second)
		time.Sleep(50 * time.Second)
		check("after the minute", 2, 0)
		if server.value != "ours" {
			t.Errorf("the child has the value %q", server.value)
		}
		check("repaired", 2, 0)
		time.Sleep(time.Hour)
		check("idle", 2, 0)
		edit("theirs")
		check("a change after a long time", 3, 0)
		if server.traced != 1 {
			t.Errorf("%d applies changed the annotation of the trace; want only the creation", server.traced)
		}
		if got := strings.Count(log.String(), "keeps no managedFields"); got != 1 {
			t.Errorf("that was logged %d times", got)
		}
	})
}
