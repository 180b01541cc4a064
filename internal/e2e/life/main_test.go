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
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/cli"
	"gopf.dev/gopf/internal/controlplane"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/manifests"
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
	flag.Parse()
	patient()
	path, stop, err := controlplane.ForTests(os.Stderr)
	if err == nil {
		err = prepare(path)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "prepare the control plane:", err)
		os.Exit(1)
	}
	code := m.Run()
	stop()
	os.Exit(code)
}

// patient makes more tests run at the same time than there are processors: they
// mostly wait.
func patient() {
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		_ = flag.Set("test.parallel", "24") // it exists in every test
	}
}

func prepare(path string) error {
	config, _, err := kube.LoadConfig(path, "")
	if err != nil {
		return err
	}
	config.QPS = -1
	objects, err := manifests.Read("testdata/crds.yaml", "../../../peering.yaml")
	if err != nil {
		return err
	}
	cluster, kubeconfig = config, path
	return manifests.Apply(context.Background(), config, objects, nil)
}
