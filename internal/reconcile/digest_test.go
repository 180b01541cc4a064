package reconcile_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/childwatch"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/reconcile"
)

// marked is an API server with one child, whose digest another client replaces.
type marked struct {
	apiclient.API
	version, applies int
	digest           string
	padding          int // bytes
}

func (m *marked) body() *object.Body {
	raw := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"default","uid":"abcdef01","resourceVersion":"%d",
		"annotations":{"gopf.dev/applied":%q},"labels":{"gopf.dev/children":"me"},
		"managedFields":[{"manager":"me","operation":"Apply","time":"%d","fieldsV1":{}}],
		"ownerReferences":[{"apiVersion":"v1","kind":"Owner","name":"o","uid":"o-uid","controller":true}]},"data":%q}`, m.version, m.digest, m.applies, strings.Repeat("x", m.padding))
	body, err := object.ParseWhole([]byte(raw))
	if err != nil {
		panic(err)
	}
	return body
}

func (m *marked) Get(_ context.Context, t kube.Target) (*object.Body, error) {
	if m.version == 0 {
		return nil, apierrors.NewNotFound(t.Info.GVR().GroupResource(), t.Name)
	}
	return m.body(), nil
}

func (m *marked) Patch(_ context.Context, _ kube.Target, _ types.PatchType, raw []byte, _ ...kube.Param) (*object.Body, error) {
	parsed, err := object.Parse(raw)
	if err != nil {
		return nil, err
	}
	m.applies, m.version = m.applies+1, m.version+1
	m.digest, _ = parsed.Annotations()["gopf.dev/applied"].(string)
	return m.body(), nil
}

// A client that replaces only the digest of a child must not get around the limit.
func TestRepairsOfTheDigestAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, marks := &marked{}, uint64(0)
		store := childwatch.NewStore("me", func() uint64 { marks++; return marks })
		runner := &reconcile.Runner{Objects: &apiclient.Objects{API: server}, Store: store, Name: "me"}
		inventory, fights := &children.Inventory{Owner: "o-uid"}, &reconcile.Fights{}
		for range 50 {
			w := &handler.Wanted{Info: widgets, Fields: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "w"}}}
			w.APIVersion, w.Kind, w.Namespace, w.Name = "example.com/v1", "Widget", "default", "w"
			result, err := runner.Run(t.Context(), reconcile.Task{
				Owner:     reconcile.Owner{Identity: object.Identity{Namespace: "default", Name: "o", UID: "o-uid"}},
				Inventory: inventory, Wanted: []*handler.Wanted{w}, Fights: fights, Log: slog.New(slog.DiscardHandler), Prune: true, Alone: true,
			})
			if err != nil || len(result.Problems) > 0 {
				t.Fatal(err, result.Problems)
			}
			inventory = result.Inventory
			server.digest, server.version = "theirs", server.version+1
			child, err := store.Read(widgets, server.body())
			if err != nil {
				t.Fatal(err)
			}
			store.Sent(child.Key, child) // as an event would
		}
		if server.applies != 6 { // the creation and five repairs
			t.Errorf("50 changes in no time caused %d applies, want 6", server.applies)
		}
	})
}
