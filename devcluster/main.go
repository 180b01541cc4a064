// Command devcluster runs a Kubernetes control plane (etcd, kube-apiserver and
// kube-controller-manager) in one process, for developing and testing operators.
//
// It listens only on 127.0.0.1, and runs no scheduler and no kubelet, so pods stay pending.
// It has its own certificate authority for TLS. RBAC is on, service account tokens work, and
// the default controllers run (garbage collection, namespaces, volumes, workloads and
// others).
//
// Package internal/controlplane of the module gopf.dev/gopf builds, starts and stops it. It
// can also be run by hand:
//
//	devcluster --data ./cluster
//
// It must be linked with the Kubernetes version, or clients see v0.0.0:
//
//	go build -ldflags "-X k8s.io/component-base/version.gitVersion=v1.37.1 \
//	  -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37"
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
)

// Exit codes besides 0: a failure, and an invalid command line.
const (
	exitFailure = 1
	exitUsage   = 2
)

const help = `devcluster runs a Kubernetes control plane (etcd, kube-apiserver and
kube-controller-manager) in one process, on 127.0.0.1, until it gets SIGINT or
SIGTERM. There is no scheduler and no kubelet: pods stay pending.

Usage:
  devcluster [flags]

Examples:
  devcluster                    # a cluster that is gone when it stops
  devcluster --data ./cluster   # a cluster that keeps its objects and its kubeconfig

Flags:
`

// settings are the values of the command line flags.
type settings struct {
	data       string
	port       int
	log        string
	kubeconfig string
	supervised bool
	bench      bool
}

func main() {
	var o settings
	flags := pflag.NewFlagSet("devcluster", pflag.ContinueOnError)
	flags.StringVar(&o.data, "data", "", "`folder` for objects, keys and port; default: a temporary folder, which is removed at the end")
	flags.IntVar(&o.port, "port", 0, "`port` to listen on; default: the port stored in the data folder, or else a free one")
	flags.StringVar(&o.log, "log", "", "`file` for the logs of the components; default: devcluster.log in the data folder")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` to write a second copy of the kubeconfig to")
	flags.BoolVar(&o.supervised, "supervised", false, "report in JSON on stdout and stop when stdin ends (for programs that start this one)")
	flags.BoolVar(&o.bench, "bench", false, "for measurements: do not wait for the disk, and keep all versions of objects")
	flags.Usage = func() {}
	if err := parse(flags, &o, os.Args[1:]); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			fmt.Print(help, flags.FlagUsages())
			return
		}
		fmt.Fprintf(os.Stderr, "devcluster: %v; see devcluster --help\n", err)
		os.Exit(exitUsage)
	}

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if o.supervised {
		ctx = untilEOF(ctx, os.Stdin)
	}
	os.Exit(run(ctx, o))
}

func parse(flags *pflag.FlagSet, o *settings, args []string) error {
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", strings.Join(flags.Args(), " "))
	}
	if o.port < 0 || o.port > 65535 {
		return fmt.Errorf("--port %d is not a port; use 1 to 65535, or 0 for a free one", o.port)
	}
	return nil
}

// untilEOF returns a context that ends with ctx or at the end of in. The parent holds the
// other end of in and never writes to it. When the parent dies in any way, it is closed.
func untilEOF(ctx context.Context, in io.Reader) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		_, err := io.Copy(io.Discard, in)
		cancel(fmt.Errorf("stdin ended: %w", errors.Join(err, io.EOF)))
	}()
	return ctx
}
