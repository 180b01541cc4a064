//go:build !gopf_lean

package gopftest

import (
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
)

// builtinTypes returns the merge rules of well-known kinds, as the real API server
// publishes them.
func builtinTypes(*scope) (managedfields.TypeConverter, error) {
	return applyconfigurations.NewTypeConverter(knownTypes()), nil
}
