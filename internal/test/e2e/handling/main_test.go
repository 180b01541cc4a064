// Package handling_test runs operators on a real control plane and looks at
// what becomes of the objects: over their whole lives, through restarts, lost
// connections, and the work of others.
package handling_test

import (
	"os"
	"testing"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/test/e2e/kit"
)

// cluster is the control plane that all tests share.
var cluster *rest.Config

func TestMain(m *testing.M) {
	os.Exit(kit.Main(m, 16, func(c kit.Cluster) { cluster = c.Config }, "testdata/crds.yaml"))
}
