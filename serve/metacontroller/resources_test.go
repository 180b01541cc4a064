package metacontroller

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A sync that needs the objects of a resource that cannot be listed would wait forever.
func TestResourcesMustBeListedAndWatched(t *testing.T) {
	r := &resources{age: time.Hour, known: map[string]group{"v1": {read: time.Now(), list: []metav1.APIResource{
		{Name: "things", Kind: "Thing", Verbs: []string{"get", "list", "watch"}},
		{Name: "unknown", Kind: "Unknown"}, // some servers do not say
		{Name: "reviews", Kind: "Review", Verbs: []string{"create"}},
		{Name: "lists", Kind: "List", Verbs: []string{"list"}},
	}}}}
	for plural, ok := range map[string]bool{"things": true, "unknown": true, "reviews": false, "lists": false} {
		if found, err := r.byName("v1", plural); (err == nil) != ok {
			t.Errorf("%s: got %v, %v", plural, found, err)
		}
	}
}

// A hook may return any text as the apiVersion of a child or a rule.
func TestAnInvalidAPIVersionBecomesNoPath(t *testing.T) {
	r := &resources{known: map[string]group{}} // a request would panic
	for _, apiVersion := range []string{"../v1", "..", "v1/..", "a/..", "/v1", "a/", "/", "a/b/c", "a b/v1", "v1?x=y", "a%2fb/v1", "V1", "a..b/v1"} {
		if _, err := r.byName(apiVersion, "things"); err == nil || !strings.Contains(err.Error(), apiVersion) {
			t.Errorf("%q: got %v", apiVersion, err)
		}
		if _, err := r.byKind(apiVersion, "Thing"); err == nil {
			t.Errorf("%q is no error", apiVersion)
		}
	}
	for _, apiVersion := range []string{"v1", "apps/v1", "metacontroller.k8s.io/v1alpha1", "a-1.b/v2beta3"} {
		if _, err := groupVersion(apiVersion); err != nil {
			t.Errorf("%q: %v", apiVersion, err)
		}
	}
}
