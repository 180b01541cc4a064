// Package e2e runs whole operators on a real Kubernetes API.
//
// Operators run in the process of the tests where their calls and requests are to
// be counted, and in a process of their own where they get signals or are killed:
// that is this executable with a variable set, or an example. Every test has a
// namespace of its own, and shares the cluster and the resource of the examples.
package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"gopf.dev/gopf/cli"
	"gopf.dev/gopf/internal/controlplane"
	"gopf.dev/gopf/internal/manifests"
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
	os.Exit(withCluster(m.Run))
}

// withCluster runs the tests while the cluster is there.
func withCluster(run func() int) int {
	path, stop, err := controlplane.ForTests(os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer stop()
	kubeconfig = path
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return run()
}

// prepare makes the cluster have what all tests need.
func prepare() (err error) {
	if cluster, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return err
	}
	cluster.QPS = -1
	objects, err := manifests.Read("../../examples/crd.yaml")
	if err != nil {
		return err
	}
	return manifests.Apply(context.Background(), cluster, objects, nil)
}
