package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"gopf.dev/gopf/internal/dev/controlplane"
	"gopf.dev/gopf/internal/dev/manifests"
	"gopf.dev/gopf/internal/dev/nested"
	"gopf.dev/gopf/internal/kube"
)

// defaultArgs are the operator's arguments if the user passes none.
var defaultArgs = []string{"run", "--all-namespaces", "--standalone", "--dev", "--verbose"}

// dev is one run of "gopf dev".
type dev struct {
	operator   string   // folder of its main package
	args       []string // its command line
	apply      []string // files and folders with manifests
	data       string
	kubeconfig string // of an existing cluster; empty means to start a control plane

	stop   *interrupt
	stderr io.Writer
}

func newDev(stop *interrupt) *cobra.Command {
	d := &dev{stop: stop}
	cmd := &cobra.Command{
		Use:   "dev PATH [flags] [-- ARGS]",
		Short: "Run an operator on a local Kubernetes control plane",
		Long: `Build the operator whose main package is in the folder PATH, start a real Kubernetes
control plane, apply manifests to it, and run the operator until Ctrl-C. Instead of a
main function, the package may export func Register(op *gopf.Operator); see "gopf run".
PATH may also be the YAML file of an operator; see "gopf serve". It is reloaded when the
file, or another file in its folder, changes.

The control plane consists of etcd, the API server and the controllers. It has no
nodes, so pods stay pending. The first start builds it from source, which takes a few
minutes. Later starts take seconds.

ARGS are the arguments of the operator. Default:
"run --all-namespaces --standalone --dev --verbose".

The exit code is that of the operator, or 0 after Ctrl-C. A second Ctrl-C stops
everything immediately.`,
		Example: `  gopf dev ./examples/01-minimal --apply examples/crd.yaml
  gopf dev . --apply deploy/ --apply sample.yaml --data .cluster
  gopf dev . --kubeconfig ~/.kube/config -- run --namespace=staging`,
		Args: func(cmd *cobra.Command, args []string) error {
			before := args
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				before = args[:dash]
			}
			switch {
			case len(before) == 0:
				return errors.New("PATH is missing; name the folder of the operator's main package")
			case len(before) > 1:
				return fmt.Errorf("unexpected argument %q; put the operator's own arguments after --", before[1])
			case d.data != "" && d.kubeconfig != "":
				return errors.New("--data and --kubeconfig exclude each other; --data is for the control plane that gopf starts")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			d.operator, d.args, d.stderr = args[0], args[1:], cmd.ErrOrStderr()
			if len(d.args) == 0 {
				d.args = defaultArgs
			} else if isOperatorFile(d.operator) && d.args[0] != "run" {
				return usagef("the arguments of an operator that is a file begin with run, as in '-- run --all-namespaces'")
			}
			return d.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&d.apply, "apply", nil, "`file` or folder with manifests (YAML or JSON) to apply first; may be repeated")
	flags.StringVar(&d.data, "data", "", "`folder` to keep the cluster in for the next run; default: the cluster is deleted at the end")
	flags.StringVar(&d.kubeconfig, "kubeconfig", "", "kubeconfig `file` of an existing cluster to use instead of starting one")
	return cmd
}

// run checks all input before it starts anything.
func (d *dev) run(ctx context.Context) error {
	if d.kubeconfig != "" {
		if _, err := os.Stat(d.kubeconfig); err != nil {
			return usagef("--kubeconfig: %w; name an existing kubeconfig file", err)
		}
	}
	objects, err := manifests.Read(d.apply...)
	if errors.Is(err, fs.ErrNotExist) {
		return usagef("--apply: %w; name an existing file or folder with manifests", err)
	}
	if err != nil {
		return fmt.Errorf("--apply: %w", err)
	}
	file := isOperatorFile(d.operator)
	var build *build
	if !file {
		if err := checkFolder(d.operator); err != nil {
			return err
		}
		if build, err = prepareBuild(ctx, []string{d.operator}); err != nil {
			return err
		}
	}
	temp, err := os.MkdirTemp("", "gopf-dev-")
	if err != nil {
		return fmt.Errorf("create a temporary folder: %w", err)
	}
	defer os.RemoveAll(temp)
	executable, args := "", d.args
	if file {
		args = append([]string{"reload", d.operator}, args[1:]...) // without "run"
		executable, err = nested.Build(ctx, serveProgram, d.stderr)
	} else {
		executable, err = build.into(ctx, temp, d.stderr)
	}
	if err != nil {
		return err
	}

	kubeconfig, cluster, err := d.cluster(ctx)
	if err != nil {
		return err
	}
	if cluster != nil {
		defer stopCluster(cluster, d.stderr)
		// Also remove it before that, because the user may interrupt the shutdown.
		defer os.RemoveAll(temp)
	}
	if err := d.applyTo(ctx, kubeconfig, objects); err != nil {
		return err
	}
	d.explain(kubeconfig, cluster)
	return d.stop.supervise(cluster, process{
		path: executable,
		args: args,
		env:  []string{"KUBECONFIG=" + kubeconfig},
		name: "the operator",
	}, d.stderr)
}

// stopCluster stops a control plane that gopf started, and prints errors.
func stopCluster(cluster *controlplane.ControlPlane, stderr io.Writer) {
	if err := cluster.Stop(); err != nil {
		fmt.Fprintln(stderr, "gopf:", err)
	}
}

// cluster returns the kubeconfig to use, and the control plane if it started one.
func (d *dev) cluster(ctx context.Context) (string, *controlplane.ControlPlane, error) {
	if d.kubeconfig != "" {
		path, err := filepath.Abs(d.kubeconfig)
		return path, nil, err
	}
	cluster, err := controlplane.Start(ctx, controlplane.Options{Data: d.data, Progress: d.stderr})
	if err != nil {
		return "", nil, err
	}
	return cluster.Kubeconfig(), cluster, nil
}

func (d *dev) applyTo(ctx context.Context, kubeconfig string, objects []manifests.Object) error {
	if len(objects) == 0 {
		return nil
	}
	config, _, err := kube.LoadConfig(kubeconfig, "")
	if err != nil {
		return err
	}
	err = manifests.Apply(ctx, config, objects, func(o manifests.Object) { fmt.Fprintf(d.stderr, "Applied %v.\n", o) })
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// explain prints how to reach the cluster from another terminal.
func (d *dev) explain(kubeconfig string, cluster *controlplane.ControlPlane) {
	if cluster != nil {
		kept := "deleted at the end"
		if d.data != "" {
			kept = "kept in " + d.data
		}
		fmt.Fprintf(d.stderr, "Kubernetes %s is running on %s; its objects are %s. ", cluster.Version(), cluster.Server(), kept)
	}
	fmt.Fprintf(d.stderr, `In another terminal:

  export KUBECONFIG=%s
  kubectl get all    # no kubectl? "make kubectl" in a checkout of gopf builds one

Running the operator; stop everything with Ctrl-C.

`, kubeconfig)
}
