// Command 18-website is an operator for websites. Each has a ConfigMap with its pages, a
// Deployment and a Service, and is registered at an HTTP API.
package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/cli"
)

// Website is the custom resource. Its definition in deploy/crd.yaml is generated.
type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		// Page is the HTML of the website.
		// +optional
		Page string `json:"page"`
		// Replicas is the number of web servers.
		// +kubebuilder:default=1
		// +optional
		Replicas int32 `json:"replicas"`
	} `json:"spec"`
	Status struct {
		ReadyReplicas int32 `json:"readyReplicas,omitempty"`
		// +listType=map
		// +listMapKey=type
		Conditions []metav1.Condition `json:"conditions,omitempty"`
	} `json:"status,omitzero"`
}

func main() {
	op := gopf.New(gopf.Identity("websites.gopf.dev"))
	sites := gopf.For[*Website](op, "gopf.dev/v1/websites")
	sites.Reconcile("children", children,
		gopf.Owns[*corev1.ConfigMap](), gopf.Owns[*appsv1.Deployment](), gopf.Owns[*corev1.Service]())
	sites.OnDelete("deregister", func(ctx context.Context, c *gopf.Change[*Website]) error {
		return call(ctx, http.MethodDelete, c.Object) // before the children are deleted
	})
	cli.Main(op)
}

// children declares the children of a website. It is called when the website or one of
// its children has changed.
func children(ctx context.Context, r *gopf.Reconciliation[*Website]) error {
	config := gopf.Want(r, pages(r.Object))
	web := gopf.Want(r, deployment(r.Object), gopf.DependsOn(config))
	gopf.Want(r, service(r.Object), gopf.DependsOn(web)) // clients see the website when it can respond
	r.Patch.MergeStatus(map[string]any{"readyReplicas": web.Live().Status.ReadyReplicas})
	if !web.Ready {
		r.SetCondition("Registered", false, "NotReady", web.Message)
		return nil // the next change of the Deployment calls this function again
	}
	if err := call(ctx, http.MethodPut, r.Object); err != nil {
		r.SetCondition("Registered", false, "RegistryFailed", err.Error())
		return err
	}
	r.SetCondition("Registered", true, "Registered", "The registry knows the website.")
	return nil
}

func labels(site *Website) map[string]string { return map[string]string{"website": site.Name} }

func pages(site *Website) *corev1.ConfigMap {
	c := &corev1.ConfigMap{Data: map[string]string{"index.html": site.Spec.Page}}
	c.Name = site.Name
	return c
}

func deployment(site *Website) *appsv1.Deployment {
	d := &appsv1.Deployment{}
	d.Name = site.Name
	d.Spec.Replicas = &site.Spec.Replicas
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels(site)}
	d.Spec.Template.Labels = labels(site)
	d.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "web", Image: "nginx",
		VolumeMounts: []corev1.VolumeMount{{Name: "pages", MountPath: "/usr/share/nginx/html"}},
	}}
	volume := corev1.Volume{Name: "pages"}
	volume.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: site.Name}}
	d.Spec.Template.Spec.Volumes = []corev1.Volume{volume}
	return d
}

func service(site *Website) *corev1.Service {
	s := &corev1.Service{}
	s.Name = site.Name
	s.Spec.Selector = labels(site)
	s.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80}}
	return s
}

// call registers a website at the API in $REGISTRY, or removes it. Both are idempotent.
func call(ctx context.Context, method string, site *Website) error {
	url := fmt.Sprintf("%s/%s/%s", cmp.Or(os.Getenv("REGISTRY"), "http://localhost:8000"), site.Namespace, site.Name)
	request, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 && response.StatusCode != http.StatusNotFound {
		return fmt.Errorf("%s %s: %s", method, url, response.Status)
	}
	return nil
}
