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

	"gopf.dev/gopf/internal/controlplane"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/manifests"
)

// defaultArgs are given to an operator when the user gives none.
var defaultArgs = []string{"run", "--all-namespaces", "--standalone", "--dev", "--verbose"}

// dev is one call of "gopf dev".
type dev struct {
	operator   string   // folder of its main package
	args       []string // its command line
	apply      []string // files and folders
	data       string
	kubeconfig string // of an existing cluster; empty means to start one

	stop   *interrupt
	stderr io.Writer
}

func newDev(stop *interrupt) *cobra.Command {
	d := &dev{stop: stop}
	cmd := &cobra.Command{
		Use:   "dev PATH [flags] [-- ARGS]",
		Short: "Run an operator on a Kubernetes control plane of its own",
		Long: `Start a real Kubernetes control plane (etcd, API server and controllers, but no
nodes: pods stay pending), apply manifests to it, build the operator whose main
package is in the folder PATH, and run it until Ctrl-C. Instead of a main function,
the package may export func Register(op *gopf.Operator), as for "gopf run".

The first start ever builds the control plane from source, which takes minutes;
after that it is ready within seconds.

ARGS are the operator's own arguments; by default they are
"run --all-namespaces --standalone --dev --verbose".

The exit code is the operator's, and 0 after Ctrl-C. A second Ctrl-C ends
everything at once.`,
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
				return errors.New("PATH is missing: give the folder of the operator's main package")
			case len(before) > 1:
				return fmt.Errorf("unexpected argument %q: the operator's own arguments go after --", before[1])
			case d.data != "" && d.kubeconfig != "":
				return errors.New("--data and --kubeconfig exclude each other: an existing cluster keeps its own data")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			d.operator, d.args, d.stderr = args[0], args[1:], cmd.ErrOrStderr()
			if len(d.args) == 0 {
				d.args = defaultArgs
			}
			return d.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&d.apply, "apply", nil, "`file` or folder with manifests (YAML or JSON) to apply first; may be repeated")
	flags.StringVar(&d.data, "data", "", "`folder` that keeps the cluster for the next time; by default it is gone at the end")
	flags.StringVar(&d.kubeconfig, "kubeconfig", "", "`file` that names an existing cluster to use instead of starting one")
	return cmd
}

// run does everything that can fail because of the input before it starts anything.
func (d *dev) run(ctx context.Context) error {
	if d.kubeconfig != "" {
		if _, err := os.Stat(d.kubeconfig); err != nil {
			return usagef("--kubeconfig: %w: give the path of a kubeconfig file", err)
		}
	}
	objects, err := manifests.Read(d.apply...)
	if errors.Is(err, fs.ErrNotExist) {
		return usagef("--apply: %w: give the path of a file or folder with manifests", err)
	}
	if err != nil {
		return fmt.Errorf("--apply: %w", err)
	}
	if err := checkFolder(d.operator); err != nil {
		return err
	}
	build, err := prepareBuild(ctx, []string{d.operator})
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "gopf-dev-")
	if err != nil {
		return fmt.Errorf("make a temporary folder: %w", err)
	}
	defer os.RemoveAll(temp)
	executable, err := build.into(ctx, temp, d.stderr)
	if err != nil {
		return err
	}

	kubeconfig, cluster, err := d.cluster(ctx)
	if err != nil {
		return err
	}
	if cluster != nil {
		defer stopCluster(cluster, d.stderr)
		// Once more before that, because an impatient user may not let it finish.
		defer os.RemoveAll(temp)
	}
	if err := d.applyTo(ctx, kubeconfig, objects); err != nil {
		return err
	}
	d.explain(kubeconfig, cluster)
	return d.stop.supervise(cluster, process{
		path: executable,
		args: d.args,
		env:  []string{"KUBECONFIG=" + kubeconfig},
		name: "the operator",
	}, d.stderr)
}

// stopCluster stops a control plane that was started.
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

// explain says how to reach the cluster from elsewhere.
func (d *dev) explain(kubeconfig string, cluster *controlplane.ControlPlane) {
	if cluster != nil {
		kept := "gone when this ends"
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
