package reconcile_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/childwatch"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/reconcile"
)

// managed is an API server with one child. Its former manager has fields of some size.
type managed struct {
	apiclient.API
	owner  string // the uid of the owner; "" means that the child has none, and is adopted
	fields int    // bytes
	taken  int    // patches of the managedFields
}

func (m *managed) body() *object.Body {
	reference := ""
	if m.owner != "" {
		reference = fmt.Sprintf(`"ownerReferences":[{"apiVersion":"v1","kind":"Owner","name":"o","uid":%q,"controller":true}],`, m.owner)
	}
	set := fmt.Sprintf(`{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"o-uid\"}":{}}},"f:spec":{"f:value":{},%q:{}}}`, "f:"+strings.Repeat("x", m.fields))
	body, err := object.ParseWhole(fmt.Appendf(nil, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"default","uid":"w-uid","resourceVersion":"7",%s
		"managedFields":[{"manager":"me","operation":"Apply","apiVersion":"example.com/v1","fieldsV1":{"f:spec":{"f:value":{}}}},
		{"manager":"kubectl-create","operation":"Update","apiVersion":"example.com/v1","fieldsV1":%s}]},"spec":{"value":"x"}}`, reference, set))
	if err != nil {
		panic(err)
	}
	return body
}

func (m *managed) Get(context.Context, kube.Target) (*object.Body, error) { return m.body(), nil }

func (m *managed) Patch(_ context.Context, _ kube.Target, form types.PatchType, _ []byte, _ ...kube.Param) (*object.Body, error) {
	if form == types.JSONPatchType {
		m.taken++
	}
	return m.body(), nil
}

// Clients of the namespace of a child can make its managedFields large. The operator then
// writes it as a large child, and does not decode the fields of the former manager.
func TestLargeManagedFieldsAreNotDecoded(t *testing.T) {
	for name, test := range map[string]struct {
		owner  string
		fields int
		taken  int
		warns  bool
	}{
		"taken over":                 {"o-uid", 1000, 1, false},
		"too large to be taken over": {"o-uid", 200 << 10, 0, true},
		"released":                   {"", 1000, 1, false},
		"too large to be released":   {"", 200 << 10, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			server := &managed{owner: test.owner, fields: test.fields}
			store := childwatch.NewStore("me", func() uint64 { return 1 })
			child, err := store.Read(widgets, server.body())
			if err != nil {
				t.Fatal(err)
			}
			store.Add(child)
			w := &handler.Wanted{Info: widgets, Desired: children.Desired{AdoptExisting: true}, Fields: map[string]any{
				"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "w"}, "spec": map[string]any{"value": "y"},
			}}
			w.APIVersion, w.Kind, w.Namespace, w.Name = "example.com/v1", "Widget", "default", "w"
			size := 0
			result, err := (&reconcile.Runner{Objects: &apiclient.Objects{API: server}, Store: store, Name: "me"}).Run(t.Context(), reconcile.Task{
				Owner:     reconcile.Owner{Identity: object.Identity{Namespace: "default", Name: "o", UID: "o-uid"}},
				Inventory: &children.Inventory{Owner: "o-uid"}, Wanted: []*handler.Wanted{w}, Fights: &reconcile.Fights{}, Log: slog.New(slog.NewTextHandler(&log, nil)),
				Turn: func(_ context.Context, n int) (func(), error) { size = n; return func() {}, nil },
			})
			if err != nil || len(result.Problems) > 0 {
				t.Fatal(err, result.Problems)
			}
			if server.taken != test.taken || strings.Contains(log.String(), "managedFields of a child are too large") != test.warns {
				t.Errorf("%d patches of the managedFields; want %d; the log is %s", server.taken, test.taken, log.String())
			}
			if size < test.fields {
				t.Errorf("the child is written as one of %d bytes", size)
			}
		})
	}
}
