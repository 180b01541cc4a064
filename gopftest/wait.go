package gopftest

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// patience limits how long helpers wait.
const patience = time.Minute

// Wait waits until an object exists and wanted returns true for it, and returns it. It
// fails the test after one minute, in virtual time inside a testing/synctest bubble.
func (c *Cluster) Wait(t testing.TB, resource, namespace, name string, wanted func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	t.Helper()
	var last *unstructured.Unstructured
	c.await(t, resource, func() bool {
		obj, err := c.hand.get(resource, namespace, name)
		if err != nil && !apierrors.IsNotFound(err) {
			t.Logf("get %s %s/%s: %v", resource, namespace, name, err)
		}
		if err == nil {
			last = obj
		}
		return err == nil && wanted(obj)
	}, func() {
		if last == nil {
			t.Fatalf("%s %s/%s does not exist after %s", resource, namespace, name, patience)
		}
		t.Fatalf("%s %s/%s did not reach the wanted state within %s; it is: %s", resource, namespace, name, patience, encode(last.Object))
	})
	return last
}

// Wait is [Cluster.Wait] with the object decoded as T.
func Wait[T metav1.Object](t testing.TB, c *Cluster, resource, namespace, name string, wanted func(T) bool) T {
	t.Helper()
	var found T
	c.Wait(t, resource, namespace, name, func(u *unstructured.Unstructured) bool {
		found = decodeAs[T](t, u)
		return wanted(found)
	})
	return found
}

// WaitGone waits until an object no longer exists. It fails the test after one minute.
func (c *Cluster) WaitGone(t testing.TB, resource, namespace, name string) {
	t.Helper()
	var last *unstructured.Unstructured
	c.await(t, resource, func() bool {
		obj, err := c.hand.get(resource, namespace, name)
		last = obj
		return apierrors.IsNotFound(err)
	}, func() {
		t.Fatalf("%s %s/%s still exists after %s: %s", resource, namespace, name, patience, encode(last))
	})
}

// WaitList waits until wanted returns true for the list of objects in a namespace, and
// returns the list. "" means all namespaces. It fails the test after one minute.
func (c *Cluster) WaitList(t testing.TB, resource, namespace string, wanted func([]*unstructured.Unstructured) bool) []*unstructured.Unstructured {
	t.Helper()
	var last []*unstructured.Unstructured
	c.await(t, resource, func() bool {
		items, err := c.hand.list(resource, namespace)
		last = items
		return err == nil && wanted(items)
	}, func() {
		t.Fatalf("the %s in namespace %q did not reach the wanted state within %s; they are: %s", resource, namespace, patience, encode(last))
	})
	return last
}

// Until polls wanted every 10 milliseconds until it returns true. Use it for conditions
// that are not about objects. It fails the test after one minute. The failure message
// contains what, which names the condition in words.
func Until(t testing.TB, what string, wanted func() bool) {
	t.Helper()
	over := time.After(patience)
	for !wanted() {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-over:
			t.Fatalf("condition not met within %s: %s", patience, what)
		}
	}
}

func (c *Cluster) await(t testing.TB, resource string, look func() bool, fail func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := c.hand.await(ctx, resource, look)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		fail()
	default:
		t.Fatal(err)
	}
}
