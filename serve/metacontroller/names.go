package metacontroller

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Versions of hooks.
const (
	V1 = "v1"
	V2 = "v2"
)

// Key returns the name of an object in the maps of a request. With v1, the requests of
// namespaced parents have no objects of other namespaces and no cluster-scoped ones: for
// these, shown is false. parentNamespace is empty for cluster-scoped parents.
func Key(version, parentNamespace, namespace, name string) (key string, shown bool) {
	if version != V2 && parentNamespace != "" {
		return name, namespace == parentNamespace
	}
	if namespace == "" {
		return name, true
	}
	return namespace + "/" + name, true
}

// kindKey returns the name of a kind in the maps of a request.
func kindKey(apiVersion, kind string) string { return kind + "." + apiVersion }

// objects are objects by the key of their kind, then by namespace and name.
type objects map[string]map[string]*unstructured.Unstructured

func (o objects) add(kind string, obj *unstructured.Unstructured) {
	o[kind][identity(obj)] = obj
}

func (o objects) get(obj *unstructured.Unstructured) *unstructured.Unstructured {
	return o[kindKey(obj.GetAPIVersion(), obj.GetKind())][identity(obj)]
}

// request returns the objects as the map of a request.
func (o objects) request(version, parentNamespace string) map[string]any {
	request := map[string]any{}
	for kind, members := range o {
		group := map[string]any{}
		for _, obj := range members {
			if key, shown := Key(version, parentNamespace, obj.GetNamespace(), obj.GetName()); shown {
				group[key] = obj.Object
			}
		}
		request[kind] = group
	}
	return request
}

func identity(obj *unstructured.Unstructured) string {
	return obj.GetNamespace() + "/" + obj.GetName()
}
