package e2e

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"gopf.dev/gopf/internal/test/e2e/kit"
)

func TestASignalEndsItCleanly(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]os.Signal{"SIGINT": os.Interrupt, "SIGTERM": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := examples(t, namespace(t))
			p := startOperator(t, "greeting", newRecording(t).env(), "run", "--namespace", objects.namespace)
			objects.create("example", nil)
			objects.awaitHandled("example")
			p.Signal(signal)
			if code := p.Wait(); code != 0 {
				t.Errorf("got exit code %d", code)
			}
			if len(p.Log.With("Operator is stopping.")) != 1 {
				t.Error("it does not say that it stops")
			}
		})
	}
}

func TestTheSecondSignalEndsItAtOnce(t *testing.T) {
	t.Parallel()
	objects := examples(t, namespace(t))
	calls := newRecording(t)
	p := startOperator(t, "hanging", calls.env(), "run", "--namespace", objects.namespace)
	objects.create("example", nil)
	kit.Await(t, "the handler is called", func() bool { return len(calls.calls()) > 0 })
	p.Signal(syscall.SIGTERM)
	p.Log.WaitFor(t, "Operator is stopping.")
	time.Sleep(time.Second) // it would be taken for an echo of the first one
	p.Signal(os.Interrupt)
	if code := p.Wait(); code != 130 {
		t.Errorf("got exit code %d", code)
	}
	if len(p.Log.With("second signal")) != 1 || len(p.Log.With("left behind")) != 0 {
		t.Error("it was not the second signal that ended it")
	}
	if objects.handled("example") {
		t.Error("the handler has not returned, but the object counts as handled")
	}
}

func TestASignalEndsItWhileTheClusterDoesNotAnswer(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	connected := make(chan struct{})
	go func() {
		if _, err := silent.Accept(); err == nil {
			close(connected)
		}
	}()
	p := startOperator(t, "greeting", []string{"KUBECONFIG=" + kubeconfigFor(t, "https://"+silent.Addr().String())}, "run", "--all-namespaces")
	<-connected
	p.Signal(syscall.SIGTERM)
	if code := p.Wait(); code != 0 {
		t.Errorf("got exit code %d", code)
	}
}

// kubeconfigFor writes the shared cluster's kubeconfig with another server in it.
func kubeconfigFor(t *testing.T, server string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server = server
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}
