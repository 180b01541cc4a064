package controlplane

import (
	"context"
	"io"
	"os"
)

// KubeconfigVariable is the environment variable with the kubeconfig of a running control
// plane that tests share.
const KubeconfigVariable = "GOPF_TEST_KUBECONFIG"

// ForTests returns the kubeconfig of a control plane for the tests of a package. Call it in
// TestMain. It uses the running control plane in GOPF_TEST_KUBECONFIG, or else starts a
// temporary one. The caller must call stop at the end in both cases.
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
