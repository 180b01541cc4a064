// Package faults_test runs operators on a real control plane through a proxy
// that does to them what networks and API servers do.
//
// Whatever the fault, the same must hold: no object is missed, nothing is handled
// again, no handler is called again because a write had to be repeated, the
// operator lives on, and soon after the fault's end all is as if it had not been.
package faults_test

import (
	"os"
	"testing"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/test/e2e/kit"
)

// cluster is the control plane that all tests share.
var cluster *rest.Config

func TestMain(m *testing.M) {
	os.Exit(kit.Main(m, 14, func(c kit.Cluster) { cluster = c.Config }, "testdata/crd.yaml"))
}
