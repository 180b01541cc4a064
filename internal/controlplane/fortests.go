package controlplane

import (
	"context"
	"io"
	"os"
)

// KubeconfigVariable names an environment variable with the kubeconfig of a control
// plane that is already running, for tests that share one.
const KubeconfigVariable = "GOPF_TEST_KUBECONFIG"

// ForTests returns the kubeconfig of a control plane for the tests of a package, to
// be called in TestMain: the running one that GOPF_TEST_KUBECONFIG names, or else a
// temporary one of its own. The caller calls stop at the end in both cases.
func ForTests(progress io.Writer) (kubeconfig string, stop func(), err error) {
	if kubeconfig := os.Getenv(KubeconfigVariable); kubeconfig != "" {
		_, err := os.Stat(kubeconfig)
		return kubeconfig, func() {}, err
	}
	c, err := Start(context.Background(), Options{Progress: progress})
	if err != nil {
		return "", nil, err
	}
	return c.Kubeconfig(), func() { _ = c.Stop() }, nil
}
