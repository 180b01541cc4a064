// Package attacks_test attacks an operator as its tenants and its network can.
//
// One operator runs in a process of its own with a memory limit. A tenant attacks it
// through objects in the tenant's own namespace, or any network peer does through the
// webhook port. During and after each attack, the objects and the reviews of another
// tenant must be handled in time, by the same process, within the memory limit.
package attacks_test

import (
	"os"
	"testing"

	"gopf.dev/gopf/internal/test/e2e/kit"
)

// cluster is the control plane.
var cluster kit.Cluster

func TestMain(m *testing.M) {
	os.Exit(kit.Main(m, 0, func(c kit.Cluster) { cluster = c }, "testdata/crds.yaml"))
}
