package apiclient

import (
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

func TestBuiltInTypesAreKnownByTheirPackages(t *testing.T) {
	checked := 0
	for gvk, plain := range scheme.Scheme.AllKnownTypes() {
		pointer := reflect.PointerTo(plain)
		if !strings.HasPrefix(plain.PkgPath(), "k8s.io/api/") || !pointer.Implements(reflect.TypeFor[metav1.Object]()) {
			continue
		}
		checked++
		if got, ok := BuiltIn(pointer); !ok || got != gvk {
			t.Errorf("%v is taken for a %v, not a %v", plain, got, gvk)
		}
	}
	if checked < 100 {
		t.Errorf("only %d types are checked", checked)
	}
	if _, ok := BuiltIn(reflect.TypeFor[*kindless]()); ok {
		t.Error("a type outside of k8s.io/api was taken for a built-in one")
	}
}

type kindless struct{ metav1.ObjectMeta }
