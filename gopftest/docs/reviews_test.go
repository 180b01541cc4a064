package docs_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

func limit(_ context.Context, r *gopf.Review[*Database]) error {
	if r.Object.Spec.Size > 100 {
		return gopf.Deny("a database has at most 100 GB")
	}
	if r.Object.Spec.Size == 0 {
		r.Patch.Set("spec.size", 10)
	}
	return nil
}

func TestSizesAreDefaulted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := gopftest.NewCluster(t, databases)
		op := newOperator()
		gopf.For[*Database](op, databases).Mutate("limit", limit)
		gopftest.Start(t, op, cluster)
		time.Sleep(time.Second) // until the cluster knows the webhooks
		cluster.Create(t, database(0))
		if db := gopftest.Get[*Database](t, cluster, databases, "default", "main"); db.Spec.Size != 10 {
			t.Errorf("the size is %d", db.Spec.Size)
		}
	})
}

func TestLimit(t *testing.T) {
	cluster := gopftest.NewCluster(t, databases)
	review := gopftest.Review(t, cluster, database(1000), gopftest.RequestedBy("jane", "developers"))
	var denied *gopf.AdmissionError
	if err := review.Run(limit); !errors.As(err, &denied) || denied.Code != 403 {
		t.Errorf("got %v, want a denial", err)
	}
}
