// Package handling_test runs operators on a real control plane and looks at
// what becomes of the objects: over their whole lives, through restarts, lost
// connections, and the work of others.
package handling_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/controlplane"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/manifests"
)

// cluster is the control plane that all tests share.
var cluster *rest.Config

func TestMain(m *testing.M) {
	flag.Parse()
	patient()
	kubeconfig, stop, err := controlplane.ForTests(os.Stderr)
	if err == nil {
		err = prepare(kubeconfig)
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
		_ = flag.Set("test.parallel", "16") // it exists in every test
	}
}

func prepare(kubeconfig string) error {
	config, _, err := kube.LoadConfig(kubeconfig, "")
	if err != nil {
		return err
	}
	config.QPS = -1
	objects, err := manifests.Read("testdata/crds.yaml")
	if err != nil {
		return err
	}
	cluster = config
	return manifests.Apply(context.Background(), config, objects, nil)
}
