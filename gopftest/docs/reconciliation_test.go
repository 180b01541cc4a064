package docs_test

import (
	"context"
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

// children declares the children of a website. It may be called at any time.
func children(ctx context.Context, r *gopf.Reconciliation[*Website]) error {
	labels := map[string]string{"website": r.Object.Name}
	deployment := &appsv1.Deployment{}
	deployment.Name = r.Object.Name
	deployment.Spec.Replicas = &r.Object.Spec.Replicas
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	deployment.Spec.Template.Labels = labels
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "nginx"}}
	web := gopf.Want(r, deployment)

	service := &corev1.Service{}
	service.Name = r.Object.Name
	service.Spec.Selector = labels
	service.Spec.Ports = []corev1.ServicePort{{Port: 80}}
	gopf.Want(r, service, gopf.DependsOn(web)) // created when the Deployment is ready

	r.Patch.MergeStatus(map[string]any{"readyReplicas": web.Live().Status.ReadyReplicas})
	return nil // children that were not declared in this call are deleted
}

// TestReconciliation runs the leading block of docs/reconciliation.md, also on a real
// control plane, whose API server checks the children.
func TestReconciliation(t *testing.T) {
	cluster := gopftest.AnyCluster(t, "example.com/v1/websites", "apps/v1/deployments", "v1/services")
	op := gopf.New(gopf.Identity("websites.example.com"))
	sites := gopf.For[*Website](op, "example.com/v1/websites")
	sites.Reconcile("children", children, gopf.Owns[*appsv1.Deployment](), gopf.Owns[*corev1.Service]())
	gopftest.Start(t, op, cluster)
	site := &Website{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Website"}}
	site.Name, site.Namespace, site.Spec.Replicas = "mine", "default", 2
	cluster.Create(t, site)
	made := gopftest.Wait(t, cluster, "apps/v1/deployments", "default", "mine", func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 2 })
	if made.Spec.Selector.MatchLabels["website"] != "mine" || len(made.OwnerReferences) != 1 {
		t.Errorf("made %v, owned by %v", made.Spec, made.OwnerReferences)
	}
	if cluster.Real() {
		return // its Deployments never become ready, because there are no nodes
	}
	if _, early := cluster.Lookup(t, "v1/services", "default", "mine"); early {
		t.Error("the Service was created before the Deployment was ready")
	}
	cluster.PatchStatus(t, "apps/v1/deployments", "default", "mine", map[string]any{"status": map[string]any{
		"observedGeneration": made.Generation, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2,
		"conditions": []any{map[string]any{"type": "Available", "status": "True"}},
	}})
	gopftest.Wait(t, cluster, "v1/services", "default", "mine", func(s *corev1.Service) bool { return s.Spec.Ports[0].Port == 80 })
	cluster.Wait(t, "example.com/v1/websites", "default", "mine", func(u *unstructured.Unstructured) bool {
		n, _, _ := unstructured.NestedInt64(u.Object, "status", "readyReplicas")
		return n == 2
	})
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
	for _, begin := range []string{"type Website struct", "func children("} {
		_, rest, found := strings.Cut(string(code), begin)
		part, _, ended := strings.Cut(rest, "\n}\n")
		if !found || !ended || !strings.Contains(string(page), begin+part+"\n}\n") {
			t.Errorf("the page does not show %s", begin)
		}
	}
}
