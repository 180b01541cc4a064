package gopftest

import (
	"bytes"
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"gopf.dev/gopf"
	"gopf.dev/gopf/cli"
)

// CommandLine is an operator that runs as its program would.
type CommandLine struct {
	stop   context.CancelFunc
	done   chan struct{}
	output output
	code   int
}

// RunCommand runs the operator as its program does when it is called with the
// arguments, on the cluster, until it ends, [CommandLine.Stop] is called or the
// test ends:
//
//	program := gopftest.RunCommand(t, op, cluster, "run", "--all-namespaces")
//
// The commands run, freeze and resume get the kubeconfig of the cluster. They act
// neither on the cluster of the developer's kubeconfig nor on one that a login
// handler of the operator names.
//
// A cluster in memory is reached through a socket then, so this cannot be in a
// testing/synctest bubble.
func RunCommand(t testing.TB, op *gopf.Operator, c *Cluster, args ...string) *CommandLine {
	t.Helper()
	if at := slices.IndexFunc(args, reachesCluster); at >= 0 {
		args = slices.Insert(slices.Clone(args), at+1, "--kubeconfig="+c.Kubeconfig(t), "--context="+contextName)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &CommandLine{stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.code = cli.Run(ctx, op, args, &r.output, &r.output)
	}()
	t.Cleanup(func() {
		r.Stop()
		t.Logf("the program's output:\n%s", r.Output())
	})
	return r
}

// reachesCluster reports whether the argument is a command that talks to a cluster.
func reachesCluster(arg string) bool {
	return slices.Contains([]string{"run", "freeze", "resume"}, arg)
}

// contextName is the only context of the kubeconfigs that [Cluster.Kubeconfig]
// writes.
const contextName = "test"

// Stop ends the program as a signal does, and returns its exit code. It may be
// called more than once.
func (r *CommandLine) Stop() (exitCode int) {
	r.stop()
	return r.ExitCode()
}

// ExitCode waits until the program has ended by itself or by Stop.
func (r *CommandLine) ExitCode() int {
	<-r.done
	return r.code
}

// Output is what the program has printed so far.
func (r *CommandLine) Output() string { return r.output.String() }

// Kubeconfig writes a kubeconfig file that tells of the cluster, for programs. One
// in memory is served on a socket from then on.
func (c *Cluster) Kubeconfig(t testing.TB) (path string) {
	t.Helper()
	cfg := &rest.Config{}
	if c.Real() {
		cfg = c.config
	} else {
		server := httptest.NewServer(c.Handler())
		t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
		cfg.Host = server.URL
	}
	path = filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"test": {
			Server: cfg.Host, CertificateAuthorityData: cfg.CAData, CertificateAuthority: cfg.CAFile,
			InsecureSkipTLSVerify: cfg.Insecure, TLSServerName: cfg.ServerName,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"test": {
			ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData, ClientCertificate: cfg.CertFile, ClientKey: cfg.KeyFile,
			Token: cfg.BearerToken, TokenFile: cfg.BearerTokenFile, Username: cfg.Username, Password: cfg.Password,
			Exec: cfg.ExecProvider, AuthProvider: cfg.AuthProvider,
		}},
		Contexts:       map[string]*clientcmdapi.Context{contextName: {Cluster: "test", AuthInfo: "test"}},
		CurrentContext: contextName,
	}, path)
	if err == nil {
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		t.Fatalf("write a kubeconfig: %v", err)
	}
	return path
}

// output may be written and read at the same time.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}
