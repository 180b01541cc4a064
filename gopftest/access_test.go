package gopftest

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDenyForbidsRequestsUntilLifted(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster) {
		c.Create(t, example("a"))
		lift := c.Deny("list", "kopfexamples", "*")
		_, err := client(t, c).List(t.Context(), metav1.ListOptions{})
		if !apierrors.IsForbidden(err) {
			t.Errorf("the list was not forbidden: %v", err)
		}
		want := `kopfexamples.kopf.dev is forbidden: User "gopftest" cannot list resource "kopfexamples" in API group "kopf.dev" in the namespace "default"`
		if err.Error() != want {
			t.Errorf("forbidden with %q, want %q", err, want)
		}
		if _, err := client(t, c).Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
			t.Errorf("another verb was also forbidden: %v", err)
		}
		lift()
		if _, err := client(t, c).List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("the list is still forbidden: %v", err)
		}
	})
}

func TestAllowForbidsAllOtherRequests(t *testing.T) {
	for _, tt := range []struct {
		verb, resource, namespace string
		get, status               bool // whether these are served
	}{
		{"*", "*", "*", true, true},
		{"get", "kopfexamples", "default", true, false},
		{"get", "kopfexamples.kopf.dev", "", true, false},
		{"get", "kopfexamples/status", "", false, true},
		{"get", "kopfexamples/*", "", true, true},
		{"list", "kopfexamples", "", false, false},
		{"get", "pods", "", false, false},
		{"get", "kopfexamples.other", "", false, false},
		{"get", "kopfexamples", "other", false, false},
		{"get", "kopfexamples", "-", false, false},
	} {
		inBubble(t, func(t *testing.T, c *Cluster) {
			c.Create(t, example("a"))
			c.Allow(tt.verb, tt.resource, tt.namespace)
			_, get := client(t, c).Get(t.Context(), "a", metav1.GetOptions{})
			_, status := client(t, c).Get(t.Context(), "a", metav1.GetOptions{}, "status")
			if (get == nil) != tt.get || (status == nil) != tt.status {
				t.Errorf("%+v: get: %v, status: %v", tt, get, status)
			}
		})
	}
}

func TestDenyTakesPrecedenceOverAllow(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster) {
		c.Allow("*", "*", "*")
		c.Deny("list", "kopfexamples", "-")
		if _, err := client(t, c).List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("a list of one namespace was forbidden: %v", err)
		}
		if _, err := everywhere(t, c).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("a list of all namespaces was not forbidden: %v", err)
		}
	})
}
