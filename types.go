package gopf

import (
	"reflect"
	"strings"

	"gopf.dev/gopf/kind"
)

// RegisterType declares the resource of the type T for use with a [client.Client]: its
// objects then need no TypeMeta. The name is parsed as in [For]. Types passed to [For]
// and types of k8s.io/api need no declaration.
//
//	gopf.RegisterType[*Backup](op, "example.com/v1/backups")
//
// [May] declares the requests that handlers send for the resource. It allows [Unstructured]
// as the type, and a subresource at the end of the name, as in RBAC:
// "apps/v1/deployments/scale" or "v1/pods/exec". The name of a subresource declares no type.
func RegisterType[T Object](op *Operator, name string, opts ...TypeOption) {
	name, subresource := cutSubresource(name)
	of, err := kind.Parse(name)
	switch {
	case err != nil:
		op.problem("%w", err)
	case subresource != "" && len(opts) == 0:
		op.problem("RegisterType: \"%s/%s\" names a subresource, which has no type; declare requests for it with May", name, subresource)
	case isUntyped[T]() && len(opts) == 0:
		op.problem("RegisterType: untyped objects need no declaration; set their apiVersion and kind")
	case !of.Specific():
		op.problem("RegisterType: %q does not name one resource; use GROUP/VERSION/PLURAL", name)
	}
	if subresource == "" {
		op.types.Add(reflect.TypeFor[T](), of)
	}
	op.declareUse(of, subresource, opts)
}

// cutSubresource splits the name of a subresource: GROUP/VERSION/PLURAL/SUBRESOURCE, or
// v1/PLURAL/SUBRESOURCE in the core group. Other names are returned as they are.
func cutSubresource(name string) (resource, subresource string) {
	parts := strings.Split(name, "/")
	if len(parts) == 4 || len(parts) == 3 && parts[0] == "v1" {
		last := len(parts) - 1
		return strings.Join(parts[:last], "/"), parts[last]
	}
	return name, ""
}
