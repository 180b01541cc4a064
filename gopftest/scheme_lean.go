//go:build gopf_lean

package gopftest

import (
	"k8s.io/apimachinery/pkg/runtime"

	"gopf.dev/gopf/gopftest/internal/stable"
)

// knownTypes returns the Go types of well-known kinds in the versions that are served.
func knownTypes() *runtime.Scheme { return stable.Scheme() }
