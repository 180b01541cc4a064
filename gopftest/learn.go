package gopftest

import (
	"reflect"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf"
)

// learn notes the resources that the operator declares for Go types. Objects of these
// types then need no TypeMeta.
func (c *Cluster) learn(op *gopf.Operator) {
	c.learning.Lock()
	defer c.learning.Unlock()
	if c.declared == nil {
		c.declared = map[reflect.Type]string{}
	}
	for t, selectors := range (gopf.TestSeam{}).Types(op) {
		if len(selectors) == 1 {
			c.declared[t] = selectors[0].String()
		}
	}
}

// withKind returns the object with its kind. Without a TypeMeta, the kind is that of the
// resource which an operator declares for the Go type, or the only custom kind that has
// the name of the type. An object whose kind is unknown is returned as it is.
func (c *Cluster) withKind(obj metav1.Object) metav1.Object {
	t := reflect.TypeOf(obj)
	if typed, ok := obj.(runtime.Object); ok {
		if _, _, err := knownTypes().ObjectKinds(typed); err == nil || typed.GetObjectKind().GroupVersionKind().Kind != "" {
			return obj
		}
	}
	if _, ok := obj.(*unstructured.Unstructured); ok || t.Kind() != reflect.Pointer || reflect.ValueOf(obj).IsNil() {
		return obj
	}
	c.learning.Lock()
	resource := c.declared[t]
	c.learning.Unlock()
	gvk, ok := schema.GroupVersionKind{}, false
	if resource != "" {
		gvk, ok = c.hand.kindOf(resource)
	} else if !c.Real() {
		gvk, ok = c.kindNamed(t.Elem().Name())
	}
	if !ok {
		return obj
	}
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(encode(obj), &u.Object); err != nil || u.GetKind() != "" {
		return obj
	}
	u.SetGroupVersionKind(gvk)
	return u
}

// kindNamed returns the custom kind with the name. ok is false if there is not exactly one.
func (c *Cluster) kindNamed(name string) (gvk schema.GroupVersionKind, ok bool) {
	n := 0
	for _, res := range c.kinds.all() {
		if res.custom() && name != "" && strings.EqualFold(res.Kind.Kind, name) {
			n++
			kind := res.Kind.Kind
			if res.derivedKind {
				kind = name
			}
			gvk = schema.GroupVersionKind{Group: res.Group, Version: res.Version, Kind: kind}
		}
	}
	return gvk, n == 1
}
