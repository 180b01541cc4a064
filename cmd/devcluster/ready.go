package main

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// client checks whether the control plane is ready.
type client struct {
	kubernetes.Interface
	probed bool // the orphan for the garbage collector exists
}

func newClient(kubeconfig string) (*client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.QPS = -1 // no client-side limit: probes are few
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return &client{Interface: clients}, nil
}

// apiServerReady returns no error if all of the API server's own checks pass.
func (c *client) apiServerReady(ctx context.Context) error {
	_, err := c.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	return err
}

// controllersReady returns no error if pods can be created in the default namespace and
// the garbage collector, which starts last, works. In a data folder of an earlier run,
// only the garbage collector shows that the controllers are running.
func (c *client) controllersReady(ctx context.Context) error {
	if _, err := c.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{}); err != nil {
		return err
	}
	if _, err := c.CoreV1().ConfigMaps("default").Get(ctx, "kube-root-ca.crt", metav1.GetOptions{}); err != nil {
		return err
	}
	const namespace, name = "kube-system", "devcluster-garbage"
	maps := c.CoreV1().ConfigMaps(namespace)
	if !c.probed {
		_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: name,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "ConfigMap", Name: "nonexistent", UID: "00000000-0000-0000-0000-000000000000",
			}},
		}}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		c.probed = true
	}
	_, err := maps.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	return errors.New("the garbage collector is not at work yet")
}
