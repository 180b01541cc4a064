// Package faults_test runs operators on a real control plane through a proxy
// that does to them what networks and API servers do.
//
// Whatever the fault, the same must hold: no object is missed, nothing is handled
// again, no handler is called again because a write had to be repeated, the
// operator lives on, and soon after the fault's end all is as if it had not been.
package faults_test

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
		cluster, err = prepare(kubeconfig)
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
		_ = flag.Set("test.parallel", "14") // it exists in every test
	}
}

// prepare gives a cluster what the tests need.
func prepare(kubeconfig string) (*rest.Config, error) {
	config, _, err := kube.LoadConfig(kubeconfig, "")
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	objects, err := manifests.Read("testdata/crd.yaml")
	if err != nil {
		return nil, err
	}
	return config, manifests.Apply(context.Background(), config, objects, nil)
}
