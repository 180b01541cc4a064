package gopftest

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRequestsAreLogged(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster) {
		kex := client(t, c)
		_, _ = kex.Create(t.Context(), example("a"), metav1.CreateOptions{})
		time.Sleep(time.Minute)
		_, _ = mergePatch(t.Context(), kex, "a", `{"status":{"x":1}}`, "status")
		_, _ = kex.Get(t.Context(), "b", metav1.GetOptions{})
		_, _ = kex.List(t.Context(), metav1.ListOptions{LabelSelector: "x=y"})
		_ = kex.Delete(t.Context(), "a", metav1.DeleteOptions{})

		var got [][]any
		for _, r := range c.Requests() {
			got = append(got, []any{r.Verb, r.Group, r.Version, r.Resource, r.Subresource, r.Namespace, r.Name, r.Code})
		}
		want := [][]any{
			{"create", "kopf.dev", "v1", "kopfexamples", "", "default", "", 201},
			{"patch", "kopf.dev", "v1", "kopfexamples", "status", "default", "a", 200},
			{"get", "kopf.dev", "v1", "kopfexamples", "", "default", "b", 404},
			{"list", "kopf.dev", "v1", "kopfexamples", "", "default", "", 200},
			{"delete", "kopf.dev", "v1", "kopfexamples", "", "default", "a", 200},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
		patch := c.Requests()[1]
		if string(patch.Body) != `{"status":{"x":1}}` || patch.Method != http.MethodPatch || patch.Header.Get("Content-Type") != "application/merge-patch+json" ||
			patch.Path != "/apis/kopf.dev/v1/namespaces/default/kopfexamples/a/status" || patch.Time.Sub(c.Requests()[0].Time) != time.Minute {
			t.Errorf("got %+v", patch)
		}
		if n := len(c.Writes()); n != 3 {
			t.Errorf("%d writes", n)
		}
		if n := len(c.Writes("pods")); n != 0 {
			t.Errorf("%d writes of pods", n)
		}
		for _, tt := range []struct {
			match Match
			want  int
		}{{Writes("kopfexamples"), 3}, {Requests("get", ""), 1}, {Requests("", "kopfexamples").Subresource("status"), 1}, {Writes().From(2), 2}} {
			if n := c.Count(tt.match); n != tt.want {
				t.Errorf("counted %d, want %d", n, tt.want)
			}
		}
	})
}
