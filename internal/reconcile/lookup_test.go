package reconcile

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/childwatch"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

// young is an API server with a kind that was just installed. Each object exists, and belongs to
// the object with the uid u1.
type young struct {
	apiclient.API
	found kube.Discovery
}

func (y *young) Discover(context.Context, ...string) (kube.Discovery, error) { return y.found, nil }

func (y *young) Get(_ context.Context, t kube.Target) (*object.Body, error) {
	return object.ParseWhole([]byte(`{"apiVersion":"example.com/v1","kind":"Database","metadata":{"name":"` + t.Name + `","namespace":"ns","uid":"u2",
		"ownerReferences":[{"apiVersion":"v1","kind":"Owner","name":"o","uid":"u1","controller":true}]}}`))
}

func (y *young) runner() *Runner {
	return &Runner{Store: childwatch.NewStore("op", func() uint64 { return 1 }),
		Objects: &apiclient.Objects{API: y, Known: func() []kind.Info { return nil }, Shared: &apiclient.Discoveries{Discover: y.Discover}}}
}

var (
	databases = kind.Info{Group: "example.com", Version: "v1", Plural: "databases", Kind: "Database", Namespaced: true}
	database  = children.Key{APIVersion: "example.com/v1", Kind: "Database", Namespace: "ns", Name: "db"}
)

// Otherwise the operator would forget a child, or take one from its owner.
func TestAnEarlierDiscoveryDoesNotProveThatAnObjectIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &young{}
		r := server.runner()
		if _, err := r.Live(t.Context(), database); err == nil {
			t.Fatal("the kind is known already")
		}
		server.found.Resources = []kind.Info{databases}
		time.Sleep(time.Second)
		entries := []children.Entry{{Key: database}}
		child, err := r.findOwn(t.Context(), r.kinds(time.Now(), entries), Owner{Identity: object.Identity{UID: "u1", Namespace: "ns"}}, entries[0])
		if err != nil || child == nil {
			t.Errorf("got the child %v, %v", child, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		server := &young{}
		r := server.runner()
		_, _ = r.Live(t.Context(), database)
		server.found.Resources = []kind.Info{databases}
		time.Sleep(time.Second)
		if x := (&run{Runner: r, began: time.Now()}); !x.exists(t.Context(), database, "u2") {
			t.Error("an owner of a new kind counts as gone")
		}
	})
}

func TestAnOwnerWhoseGroupCannotBeDiscoveredCountsAsExisting(t *testing.T) {
	server := &young{}
	x := &run{Runner: server.runner()}
	if x.exists(t.Context(), database, "u2") {
		t.Error("an object of an unknown kind exists")
	}
	server.found.Failed = map[schema.GroupVersion]error{{Group: "example.com", Version: "v1"}: errors.New("no answer")}
	x.Objects.Shared.Forget()
	if !x.exists(t.Context(), database, "u2") {
		t.Error("the object counts as gone")
	}
}
