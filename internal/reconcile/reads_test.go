package reconcile_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/childwatch"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/reconcile"
	"gopf.dev/gopf/kind"
)

// slowReads takes a second for each read, and counts the concurrent ones.
type slowReads struct {
	empty

	mu        sync.Mutex
	now, most int
}

func (s *slowReads) Get(ctx context.Context, t kube.Target) (*object.Body, error) {
	s.mu.Lock()
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	time.Sleep(time.Second)
	s.mu.Lock()
	s.now--
	s.mu.Unlock()
	return s.empty.Get(ctx, t)
}

// The objects that an inventory names may be large, and nothing shows it before they are read.
func TestANamespaceReadsFewObjectsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &slowReads{}
		runner := &reconcile.Runner{Objects: &apiclient.Objects{API: server, Known: func() []kind.Info { return []kind.Info{widgets} }}, Name: "me",
			Store: childwatch.NewStore("me", func() uint64 { return 1 })}
		began := time.Now()
		var all sync.WaitGroup
		for i := range 20 {
			owner := reconcile.Owner{Identity: object.Identity{Namespace: []string{"a", "b"}[i%2], Name: "o", UID: fmt.Sprint("uid-", i)}}
			entry := children.Entry{Key: children.Key{APIVersion: widgets.APIVersion(), Kind: widgets.Kind, Namespace: "large", Name: fmt.Sprint("w", i)}}
			all.Go(func() {
				if done, _, err := runner.Teardown(t.Context(), owner, []children.Entry{entry}); !done || err != nil {
					t.Errorf("done %t, error %v", done, err)
				}
			})
		}
		all.Wait()
		if server.most != 4 || time.Since(began) != 5*time.Second {
			t.Errorf("%d reads at a time; all of them took %v", server.most, time.Since(began))
		}
	})
}

func TestUnlistedChildrenFitAnInventory(t *testing.T) {
	store := childwatch.NewStore("me", func() uint64 { return 1 })
	runner := &reconcile.Runner{Name: "me", Store: store}
	owner := reconcile.Owner{Identity: object.Identity{Namespace: "default", Name: "o", UID: "o-uid"}}
	for i := range children.MaxEntries + 100 {
		namespace := "hostile"
		if i%100 == 0 {
			namespace = "default"
		}
		addChild(t, store, namespace, i)
	}
	own := 0
	found := runner.Unlisted(owner, make([]children.Entry, 1900))
	for _, e := range found {
		if !e.Stray {
			own++
		}
	}
	if len(found) != 100 || own != 21 {
		t.Errorf("found %d, of which %d are not strays", len(found), own)
	}
}
