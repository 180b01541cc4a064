package gopf

import (
	"reflect"

	"gopf.dev/gopf/kind"
)

// RegisterType declares the resource of the type T for use with a [client.Client]: its
// objects then need no TypeMeta. The name is parsed as in [For]. Types passed to [For]
// and types of k8s.io/api need no declaration.
//
//	gopf.RegisterType[*Backup](op, "example.com/v1/backups")
//
// [May] declares the requests that handlers send for the resource. It allows [Unstructured]
// as the type.
func RegisterType[T Object](op *Operator, name string, opts ...TypeOption) {
	of, err := kind.Parse(name)
	switch {
	case err != nil:
		op.problem("%w", err)
	case isUntyped[T]() && len(opts) == 0:
		op.problem("RegisterType: untyped objects need no declaration; set their apiVersion and kind")
	case !of.Specific():
		op.problem("RegisterType: %q does not name one resource; use GROUP/VERSION/PLURAL", name)
	}
	op.types.Add(reflect.TypeFor[T](), of)
	op.declareUse(of, opts)
}
