// Package life_test runs operators on a real control plane and looks at their
// own lives: how they start and stop, take turns with others, log in, and tell
// how they are.
//
// Operators run in the process of the tests, or in processes of their own where
// they get signals: that is this executable with a variable set. Every test has
// a namespace of its own. Tests that count goroutines, or change what the whole
// cluster has, run alone before all others.
package life_test

import (
	"os"
	"testing"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/cli"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

// The control plane that all tests share.
var (
	cluster    *rest.Config
	kubeconfig string
)

func TestMain(m *testing.M) {
	if name := os.Getenv(operatorVariable); name != "" {
		cli.Main(processes()[name]())
	}
	os.Exit(kit.Main(m, 24, func(c kit.Cluster) { cluster, kubeconfig = c.Config, c.Kubeconfig }, "testdata/crds.yaml", "../../../../peering.yaml"))
}
