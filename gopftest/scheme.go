//go:build !gopf_lean

package gopftest

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// knownTypes returns the Go types of well-known kinds in all their versions.
func knownTypes() *runtime.Scheme { return scheme.Scheme }
