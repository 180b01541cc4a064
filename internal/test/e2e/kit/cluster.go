package kit

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/dev/controlplane"
	"gopf.dev/gopf/internal/dev/manifests"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/kind"
)

// Cluster is a control plane that the tests of a package share.
type Cluster struct {
	Config     *rest.Config // without a rate limit
	Kubeconfig string       // path of the kubeconfig
}

// Main runs the tests of a package on a control plane with the objects in the files, and
// returns the exit code. It calls begin with the control plane before the tests. parallel
// sets the number of parallel tests, unless the command line does. 0 means Go's default.
func Main(m *testing.M, parallel int, begin func(Cluster), files ...string) (code int) {
	flag.Parse()
	beParallel(parallel)
	kubeconfig, stop, err := controlplane.ForTests(os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the control plane:", err)
		return 1
	}
	defer stop()
	config, err := Prepare(context.Background(), kubeconfig, files...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "prepare the control plane:", err)
		return 1
	}
	begin(Cluster{config, kubeconfig})
	return m.Run()
}

// beParallel allows more parallel tests than there are processors, because they mostly
// wait.
func beParallel(n int) {
	chosen := n == 0
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		_ = flag.Set("test.parallel", strconv.Itoa(n)) // the flag exists in every test
	}
}

// Prepare returns the configuration of a control plane without a rate limit, after applying
// the files.
func Prepare(ctx context.Context, kubeconfig string, files ...string) (*rest.Config, error) {
	config, _, err := kube.LoadConfig(kubeconfig, "")
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	if len(files) == 0 {
		return config, nil
	}
	objects, err := manifests.Read(files...)
	if err != nil {
		return nil, err
	}
	return config, manifests.Apply(ctx, config, objects, nil)
}

// Existing returns the running control plane, after applying the files. It skips the test
// if there is none.
func Existing(t *testing.T, files ...string) *rest.Config {
	t.Helper()
	path := os.Getenv(controlplane.KubeconfigVariable)
	if path == "" {
		t.Skip(controlplane.KubeconfigVariable + " is not set")
	}
	config, err := Prepare(t.Context(), path, files...)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// Client returns a client, and a namespace with the name prefix. Both end with the test.
func Client(t *testing.T, config *rest.Config, prefix string) (client *kube.Client, namespace string) {
	t.Helper()
	client, err := kube.NewClient(config, kube.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	namespaces := kind.Info{Version: "v1", Plural: "namespaces", Kind: "Namespace"}
	made, err := client.Create(t.Context(), kube.Target{Info: namespaces}, fmt.Appendf(nil, `{"metadata":{"generateName":%q}}`, prefix))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Delete(context.Background(), kube.Target{Info: namespaces, Name: made.Name}, kube.DeleteOptions{UID: made.UID}); err != nil {
			t.Error(err)
		}
	})
	return client, made.Name
}
