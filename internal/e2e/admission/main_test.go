// Package admission_test runs operators with handlers of reviews on a real control
// plane, and looks at what becomes of requests to it.
//
// Every test has a kind of its own, so that a webhook that refuses everything
// disturbs nobody else.
package admission_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/controlplane"
	"gopf.dev/gopf/internal/kube"
)

// cluster is the control plane that all tests share.
var cluster *rest.Config

func TestMain(m *testing.M) {
	flag.Parse()
	patient()
	kubeconfig, stop, err := controlplane.ForTests(os.Stderr)
	if err == nil {
		cluster, _, err = kube.LoadConfig(kubeconfig, "")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "prepare the control plane:", err)
		os.Exit(1)
	}
	cluster.QPS = -1
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
		_ = flag.Set("test.parallel", "8") // it exists in every test
	}
}
