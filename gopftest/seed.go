package gopftest

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// Seed stores an object exactly as given, as a restore of etcd would: the UID, creation
// time, status, finalizers and deletion timestamp stay. Only the resource version is
// new. Use it to start an operator on objects that were dumped from another cluster.
//
// An object without a UID gets one. An object without a namespace goes to "default".
// Admission webhooks are not called. Seed fails the test if the object already exists.
// It works only on in-memory clusters.
func (c *Cluster) Seed(t testing.TB, obj metav1.Object) *unstructured.Unstructured {
	t.Helper()
	c.memoryOnly("Seed")
	return must(t, "seed "+nameOf(obj))(c.seed(obj))
}

func (c *Cluster) seed(obj metav1.Object) (*unstructured.Unstructured, error) {
	s, u, err := c.scopeOf(obj)
	if err != nil {
		return nil, err
	}
	if err := s.checkType(u); err != nil {
		return nil, err
	}
	if err := normalizeMetadata(u); err != nil {
		return nil, err
	}
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	if err := s.checkOpenNamespace(u.GetName()); err != nil {
		return nil, err
	}
	if _, exists := s.table().objects[s.key()]; exists {
		return nil, apierrors.NewAlreadyExists(s.resource.groupResource(), u.GetName())
	}
	if u.GetUID() == "" {
		u.SetUID(uuid.NewUUID())
	}
	return s.shown(c.store.put(s.resource.groupResource(), u), nil)
}
