package reconcile

import (
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

// Any client may name any owner in an annotation of its object. The reads that this causes must not
// delay those for owners in the namespace that it names.
func TestReadsCountForTheNamespaceOfTheOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &young{}
		server.found.Resources = []kind.Info{databases}
		r := server.runner()
		for range maxReads { // the owners in ns read as much as they may
			leave, err := r.enter(t.Context(), database.Namespace)
			if err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(time.Hour, leave)
		}
		began := time.Now()
		x := &run{Runner: r, began: began, Task: Task{Owner: Owner{Identity: object.Identity{Namespace: "tenant", Name: "o", UID: "u1"}}}}
		if !x.exists(t.Context(), database, "u2") {
			t.Error("the object does not exist")
		}
		raw, err := server.Get(t.Context(), kube.Target{Info: databases, Namespace: database.Namespace, Name: database.Name})
		if err != nil {
			t.Fatal(err)
		}
		child, err := r.Store.Read(databases, raw)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := x.Content(t.Context(), x.Owner.Namespace, child.WithoutContent())(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("the reads waited %v for those of the other namespace", took)
		}
	})
}
