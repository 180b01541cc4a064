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

// CommandLine is an operator that runs like its compiled program; see [RunCommand].
type CommandLine struct {
	stop   context.CancelFunc
	done   chan struct{}
	output output
	code   int
}

// RunCommand runs the operator's command line with the given arguments. The program
// runs until it exits by itself, [CommandLine.Stop] is called, or the test ends:
//
//	program := gopftest.RunCommand(t, op, cluster, "run", "--all-namespaces")
//
// With the environment variable GOPF_TEST_AS, it has the permissions of [Start].
//
// Commands that talk to a cluster receive a kubeconfig of the cluster. They use
// neither the developer's own kubeconfig nor a login handler of the operator.
//
// An in-memory cluster is then served on a local port. Therefore RunCommand does not
// work in a testing/synctest bubble.
func RunCommand(t testing.TB, op *gopf.Operator, c *Cluster, args ...string) *CommandLine {
	t.Helper()
	if at := slices.IndexFunc(args, reachesCluster); at >= 0 {
		as := c.assume(t, op).Impersonate.UserName
		args = slices.Insert(slices.Clone(args), at+1, "--kubeconfig="+c.kubeconfig(t, as), "--context="+contextName)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &CommandLine{stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.code = cli.Run(ctx, op, args, &r.output, &r.output)
	}()
	t.Cleanup(func() {
		r.Stop()
		t.Logf("output of the program:\n%s", r.Output())
	})
	return r
}

// reachesCluster reports whether the argument is a command that talks to a cluster.
func reachesCluster(arg string) bool {
	return slices.Contains([]string{"run", "freeze", "resume", "explain", "pause", "continue", "retry", "release", "top", "plan", "history"}, arg)
}

// contextName is the only context of the kubeconfigs that [Cluster.Kubeconfig]
// writes.
const contextName = "test"

// Stop shuts the program down as a termination signal does, and returns its exit code.
// It may be called more than once.
func (r *CommandLine) Stop() (exitCode int) {
	r.stop()
	return r.ExitCode()
}

// ExitCode waits until the program has exited, and returns its exit code.
func (r *CommandLine) ExitCode() int {
	<-r.done
	return r.code
}

// Output returns everything that the program has printed so far.
func (r *CommandLine) Output() string { return r.output.String() }

// Kubeconfig writes a kubeconfig file for the cluster into a temporary directory and
// returns its path. An in-memory cluster is served on a local port until the test ends.
func (c *Cluster) Kubeconfig(t testing.TB) (path string) {
	t.Helper()
	return c.kubeconfig(t, "")
}

// kubeconfig writes a kubeconfig that impersonates the user. "" means none.
func (c *Cluster) kubeconfig(t testing.TB, user string) (path string) {
	t.Helper()
	cfg := &rest.Config{}
	if c.Real() {
		cfg = rest.CopyConfig(c.config)
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
			Impersonate:           user,
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

// output is a buffer that is safe for concurrent use.
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
