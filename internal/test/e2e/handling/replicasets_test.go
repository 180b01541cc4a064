package handling_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

// deployment is one without replicas: nobody runs pods here.
func deployment(image string) fields {
	return fields{"spec": fields{
		"replicas": 0,
		"selector": fields{"matchLabels": fields{"app": "x"}},
		"template": fields{
			"metadata": fields{"labels": fields{"app": "x"}},
			"spec":     fields{"containers": []any{fields{"name": "main", "image": image}}},
		},
	}}
}

// replicaSets are those of the namespace, by the images of their pods.
func (s *space) replicaSets() map[string]*unstructured.Unstructured {
	s.T.Helper()
	list, err := s.Of("apps/v1/replicasets").List(s.T.Context(), metav1.ListOptions{})
	if err != nil {
		s.T.Fatal(err)
	}
	found := map[string]*unstructured.Unstructured{}
	for _, rs := range list.Items {
		containers, _, _ := unstructured.NestedSlice(rs.Object, "spec", "template", "spec", "containers")
		found[fmt.Sprint(containers[0].(map[string]any)["image"])] = &rs
	}
	return found
}

func TestADeploymentsStateIsNotTakenForThatOfItsReplicaSets(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	deployments := gopf.For[*appsv1.Deployment](op, "apps/v1/deployments")
	deployments.OnCreate("create_fn", func(_ context.Context, c *gopf.Change[*appsv1.Deployment]) error {
		d.Add("deployment create #%d", c.Retry)
		if c.Retry == 0 {
			return gopf.RetryAfter(0, fmt.Errorf("so that there are records to be copied"))
		}
		return nil
	})
	deployments.OnUpdate("update_fn", func(context.Context, *gopf.Change[*appsv1.Deployment]) error {
		d.Add("deployment update")
		return nil
	})
	sets := gopf.For[*appsv1.ReplicaSet](op, "apps/v1/replicasets")
	sets.OnCreate("create_fn", func(_ context.Context, c *gopf.Change[*appsv1.ReplicaSet]) error {
		d.Add("set create %s #%d", c.Object.Spec.Template.Spec.Containers[0].Image, c.Retry)
		if c.Retry == 0 {
			return gopf.RetryAfter(0, fmt.Errorf("so that there are records of its own"))
		}
		return nil
	})
	sets.OnUpdate("update_fn", func(_ context.Context, c *gopf.Change[*appsv1.ReplicaSet]) error {
		d.Add("set update %s: %s", c.Object.Spec.Template.Spec.Containers[0].Image, c.Diff)
		return nil
	})
	sets.OnDelete("delete_fn", func(_ context.Context, c *gopf.Change[*appsv1.ReplicaSet]) error {
		d.Add("set delete %s", c.Object.Spec.Template.Spec.Containers[0].Image)
		return nil
	})
	o := s.start(op, nil).following("deployments", "replicasets")

	handledSet := func(image string) {
		t.Helper()
		kit.Eventually(t, func() error {
			rs := s.replicaSets()[image]
			if rs == nil {
				return fmt.Errorf("there is no replica set of %s", image)
			}
			own := 0
			for key := range rs.GetAnnotations() {
				if strings.HasPrefix(key, "kopf.zalando.org/") && strings.HasSuffix(key, "-ofDRS") {
					own++
				}
			}
			if own != 2 || rs.GetAnnotations()[lastHandled+"-ofDRS"] == "" || !strings.HasPrefix(rs.GetAnnotations()[bound+"-ofDRS"], string(rs.GetUID())) {
				return fmt.Errorf("annotations: %q, want two of its own", rs.GetAnnotations())
			}
			return nil
		})
	}
	s.Create("apps/v1/deployments", "x", deployment("one"))
	handledSet("one")
	s.Patch("apps/v1/deployments", "x", deployment("two"))
	handledSet("two")
	for _, line := range []string{"deployment create #0", "deployment create #1", "set create one #0", "set create one #1", "set create two #0", "set create two #1"} {
		if n := d.Count(line); n != 1 {
			t.Errorf("%q is noted %d times: %q", line, n, d.All())
		}
	}
	// The second set was made after the first handling, so it got a copy of what
	// that had left on the deployment.
	if copied := s.replicaSets()["two"].GetAnnotations()[lastHandled]; copied == "" {
		t.Logf("annotations of the second set: %q", s.replicaSets()["two"].GetAnnotations())
		t.Error("nothing was copied, so nothing is tested")
	}
	o.settles(t, d) // after the deployment's controller
	s.Delete("apps/v1/deployments", "x")
	kit.Eventually(t, func() error {
		if left := s.replicaSets(); len(left) > 0 {
			return fmt.Errorf("%d replica sets are left", len(left))
		}
		return nil
	})
	if d.Count("set delete one") != 1 || d.Count("set delete two") != 1 {
		t.Errorf("calls: %q", d.All())
	}
	t.Logf("calls: %q", d.All())
}
