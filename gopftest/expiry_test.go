package gopftest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWatchesCannotResumeFromExpiredVersions(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster) {
		old := now(c)
		c.Create(t, example("a"))
		running := follow(t, c, old)
		fresh := now(c)
		c.Expire()
		c.Create(t, example("b"))
		for _, tt := range []struct {
			lines <-chan string
			want  []string
		}{
			{running, []string{"ADDED a value", "ADDED b value"}},
			{follow(t, c, fresh), []string{"ADDED b value"}},
			{follow(t, c, old), []string{"ERROR Expired", "end"}},
			{follow(t, c, ""), []string{"ADDED a value", "ADDED b value"}},
		} {
			if diff := cmp.Diff(tt.want, drain(tt.lines)); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		}
	})
}

func TestExpiredPagesReturnANewContinueToken(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster) {
		for _, name := range []string{"a", "b", "c"} {
			c.Create(t, example(name))
		}
		kex := client(t, c)
		first, err := kex.List(t.Context(), metav1.ListOptions{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		c.Create(t, example("bb"))
		c.Expire()
		_, err = kex.List(t.Context(), metav1.ListOptions{Limit: 1, Continue: first.GetContinue()})
		if !apierrors.IsResourceExpired(err) {
			t.Fatalf("got %v", err)
		}
		rest, err := kex.List(t.Context(), metav1.ListOptions{Continue: err.(apierrors.APIStatus).Status().ListMeta.Continue})
		if err != nil || len(rest.Items) != 3 {
			t.Errorf("got %v, %v", rest, err)
		}
	})
}

func TestListsCannotReadExpiredVersions(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster) {
		list, err := client(t, c).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c.Create(t, example("a"))
		c.Expire()
		_, err = client(t, c).List(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), ResourceVersionMatch: "Exact"})
		if !apierrors.IsResourceExpired(err) {
			t.Errorf("got %v", err)
		}
	})
}
