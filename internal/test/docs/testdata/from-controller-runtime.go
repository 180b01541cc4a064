package p

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type DNS interface {
	Add(ctx context.Context, host string) error
	Remove(ctx context.Context, host string) error
}

type noDNS struct{}

func (noDNS) Add(context.Context, string) error    { return nil }
func (noDNS) Remove(context.Context, string) error { return nil }

var instance = &controller{DNS: noDNS{}}

func deploymentFor(site *Website) *appsv1.Deployment {
	labels := map[string]string{"website": site.Name}
	deployment := &appsv1.Deployment{}
	deployment.Name = site.Name
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	deployment.Spec.Template.Labels = labels
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "nginx"}}
	return deployment
}
