package docs_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Replicas int32 `json:"replicas"`
	} `json:"spec"`
}

func apply(ctx context.Context, c *gopf.Change[*Website]) error {
	return reconcile(ctx, c.Subject)
}

// reconcile creates or updates the Deployment. It may be called at any time.
func reconcile(ctx context.Context, s *gopf.Subject[*Website]) error {
	labels := map[string]string{"website": s.Object.Name}
	deployment := &appsv1.Deployment{}
	deployment.Name = s.Object.Name
	deployment.Spec.Replicas = &s.Object.Spec.Replicas
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	deployment.Spec.Template.Labels = labels
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "nginx"}}
	if err := s.Adopt(deployment); err != nil {
		return err
	}
	if err := s.API.Apply(ctx, deployment); err != nil {
		return err
	}
	if deployment.Status.ReadyReplicas < s.Object.Spec.Replicas {
		return gopf.Wait(time.Minute, "only %d replicas are ready", deployment.Status.ReadyReplicas) // called earlier if it is woken
	}
	s.Patch.MergeStatus(map[string]any{"phase": "Ready"})
	return nil
}

// TestReconciliation runs the leading block of docs/reconciliation.md, also on a real
// control plane, whose API server checks the Deployment.
func TestReconciliation(t *testing.T) {
	cluster := gopftest.AnyCluster(t, "example.com/v1/websites", "apps/v1/deployments")
	op := gopf.New()
	gopf.For[*Website](op, "example.com/v1/websites").On(gopf.Create|gopf.Update|gopf.Resume, "apply", apply)
	gopftest.Start(t, op, cluster)
	site := &Website{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Website"}}
	site.Name, site.Namespace, site.Spec.Replicas = "mine", "default", 2
	cluster.Create(t, site)
	made := gopftest.Wait(t, cluster, "apps/v1/deployments", "default", "mine", func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 2 })
	if made.Spec.Selector.MatchLabels["website"] != "mine" || len(made.OwnerReferences) != 1 {
		t.Errorf("made %v, owned by %v", made.Spec, made.OwnerReferences)
	}
}

func TestTheReconciliationPageShowsThisCode(t *testing.T) {
	page, err := os.ReadFile("../../docs/reconciliation.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("reconciliation_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, begin := range []string{"type Website struct", "func apply(", "func reconcile("} {
		_, rest, found := strings.Cut(string(code), begin)
		part, _, ended := strings.Cut(rest, "\n}\n")
		if !found || !ended || !strings.Contains(string(page), begin+part+"\n}\n") {
			t.Errorf("the page does not show %s", begin)
		}
	}
}
