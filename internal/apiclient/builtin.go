package apiclient

import (
	"cmp"
	"path"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// builtInGroups has the API groups of folders in k8s.io/api whose group is not the
// folder name followed by ".k8s.io".
var builtInGroups = map[string]string{
	"apps":              "apps",
	"autoscaling":       "autoscaling",
	"batch":             "batch",
	"extensions":        "extensions",
	"policy":            "policy",
	"flowcontrol":       "flowcontrol.apiserver.k8s.io",
	"rbac":              "rbac.authorization.k8s.io",
	"apiserverinternal": "internal.apiserver.k8s.io",
}

// BuiltIn returns the kind of a type from k8s.io/api, derived from its package. Such
// types need neither a TypeMeta nor a declaration.
func BuiltIn(t reflect.Type) (gvk schema.GroupVersionKind, ok bool) {
	if t.Kind() != reflect.Pointer {
		return gvk, false
	}
	folder, found := strings.CutPrefix(t.Elem().PkgPath(), "k8s.io/api/")
	if !found {
		return gvk, false
	}
	group, version := path.Split(folder)
	group = strings.TrimSuffix(group, "/")
	gvk = schema.GroupVersionKind{Version: version, Kind: t.Elem().Name()}
	if group != "core" {
		gvk.Group = cmp.Or(builtInGroups[group], group+".k8s.io")
	}
	return gvk, true
}
