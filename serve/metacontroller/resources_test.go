package metacontroller

import (
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
