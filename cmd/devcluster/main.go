// Command devcluster runs a Kubernetes control plane (etcd, kube-apiserver and
// kube-controller-manager) in one process, for developing and testing operators.
//
// It serves on 127.0.0.1 only and runs no scheduler and no kubelet: pods stay
// pending. It has a private certificate authority for TLS, RBAC is on,
// service-account tokens work, and the default controllers run (garbage
// collection, namespaces, volumes, workloads and the rest).
//
// Package internal/dev/controlplane of module gopf.dev/gopf builds, starts and stops
// it. You can also run it by hand:
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

// Exit codes besides 0: a failure and a wrong command line.
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

// settings has the values of the command line.
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
	flags.StringVar(&o.data, "data", "", "`folder` that keeps objects, keys and port; temporary and removed at the end by default")
	flags.IntVar(&o.port, "port", 0, "`port` to serve on; by default the one kept in the data folder, else a free one")
	flags.StringVar(&o.log, "log", "", "`file` for the components' logs; by default devcluster.log in the data folder")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` to write the kubeconfig to, besides the one in the data folder")
	flags.BoolVar(&o.supervised, "supervised", false, "report in JSON on stdout and stop when stdin ends (for programs that start this one)")
	flags.BoolVar(&o.bench, "bench", false, "for measurements: wait for no disk, and keep all versions of objects")
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
		return fmt.Errorf("--port %d is not a port: give 1 to 65535, or 0 for a free one", o.port)
	}
	return nil
}

// untilEOF returns a context that ends with ctx or at the end of in. The parent process
// holds the other end of in and never writes: the system closes it when the parent ends.
func untilEOF(ctx context.Context, in io.Reader) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		_, err := io.Copy(io.Discard, in)
		cancel(fmt.Errorf("stdin ended: %w", errors.Join(err, io.EOF)))
	}()
	return ctx
}
