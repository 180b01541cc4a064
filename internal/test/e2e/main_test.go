// Package e2e runs whole operators on a real Kubernetes API.
//
// Operators run in the process of the tests where their calls and requests are to
// be counted, and in a process of their own where they get signals or are killed:
// that is this executable with a variable set, or an example. Every test has a
// namespace of its own, and shares the cluster and the resource of the examples.
package e2e

import (
	"os"
	"testing"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/cli"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

// The cluster that all tests share.
var (
	kubeconfig string
	cluster    *rest.Config
)

func TestMain(m *testing.M) {
	if name := os.Getenv(operatorVariable); name != "" {
		cli.Main(operators()[name])
	}
	os.Exit(kit.Main(m, 6, func(c kit.Cluster) { cluster, kubeconfig = c.Config, c.Kubeconfig }, "../../../examples/crd.yaml"))
}
