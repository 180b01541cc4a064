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
	memory     bool   // start the in-memory API server instead of a control plane
	real       bool   // start a control plane, which is the default
	prepare    bool   // with memory: build the control plane for later runs
	noReload   bool
	keysWanted bool // read keys although the input is no terminal
	debug      bool
	page       string // listen address of the operator's page; empty means none
	fromFile   bool   // the operator is a YAML file

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

When you save a Go file of the operator, gopf dev builds it and replaces the running
one. The cluster, its objects and the progress of handlers stay. If the build fails or
the new operator panics, one line says why, and the previous one keeps running. Saved
manifests are applied. If deploy/crd.yaml exists, it is derived from the Go types again
when they change; see "gopf manifests". In a terminal, these keys work:

  r reload · t tests on save · d debugger · a apply manifests · k kubectl shell · q quit

The control plane consists of etcd, the API server and the controllers. It has no
nodes, so pods stay pending. The first start builds it from source, which takes about
8 minutes. Later starts take seconds.

--memory starts an in-memory API server instead, which is built within a minute. kubectl
works with it. It differs from a real cluster:
  - no controllers except for custom resource definitions, the deletion of namespaces
    and garbage collection: a Deployment creates no ReplicaSet
  - no admission plugins, and hardly any defaults for built-in kinds
  - no CEL: x-kubernetes-validations of definitions are ignored, with a warning, and
    webhooks with match conditions fail
  - webhooks are reached by URL, not by service
  - the objects are gone at the end: there is no --data
With --prepare, gopf dev builds the control plane on one core meanwhile, for later runs
with --real. If you stop it before the end, the next build continues from there.

The operator serves its page on the first free port from 6080; the link is printed. The
variable GOPF_RUN_INSIGHT sets another address, and "no" turns the page off.

ARGS are the arguments of the operator. Default:
"run --all-namespaces --standalone --dev --verbose".

The exit code is 0 after Ctrl-C or q. A second Ctrl-C stops everything immediately.
With --no-reload, gopf dev ends when the operator exits, with its exit code.`,
		Example: `  gopf dev ./examples/01-minimal --apply examples/crd.yaml
  gopf dev ./examples/01-minimal --memory --apply examples/crd.yaml --apply examples/obj.yaml
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
			case d.memory && (d.real || d.data != "" || d.kubeconfig != ""):
				return errors.New("--memory excludes --real, --data and --kubeconfig; the in-memory server starts empty")
			case d.prepare && !d.memory:
				return errors.New("--prepare is for --memory; without it, the control plane is built anyway")
			case d.real && d.kubeconfig != "":
				return errors.New("--real and --kubeconfig exclude each other; --real starts a control plane")
			case d.noReload && (d.keysWanted || d.debug):
				return errors.New("--no-reload excludes --keys and --debug, which belong to the loop")
			case d.debug && debuggerPath() == "":
				return errors.New("--debug: " + noDebugger)
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
	flags.BoolVar(&d.memory, "memory", false, "start an in-memory API server instead of a control plane: ready within a minute on a new machine")
	flags.BoolVar(&d.real, "real", false, "start a real control plane; this is the default")
	flags.BoolVar(&d.prepare, "prepare", false, "with --memory: build the real control plane in the background, for later runs with --real")
	flags.BoolVar(&d.noReload, "no-reload", false, "run the operator once as it is, and exit with its exit code")
	flags.BoolVar(&d.keysWanted, "keys", false, "read keys from standard input even if it is no terminal")
	flags.BoolVar(&d.debug, "debug", false, "run the operator under the debugger delve, which listens on "+debuggerAddress)
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
	address, release := pageAddress(ctx)
	defer release()
	d.fromFile, d.page = file, address
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
	args, reloads := d.args, !d.noReload && !file // gopf-serve reloads files itself
	var files watched
	var known map[string]fileState
	if reloads {
		if build.flags, err = build.buildFlags(ctx, d.debug); err != nil {
			return err
		}
		if files, err = build.sources(ctx); err != nil {
			return err
		}
		files.given = d.apply
		known = files.look() // before the build: a change during the build must be noticed
	}
	first := filepath.Join(temp, "build-0")
	if err := os.Mkdir(first, 0o700); err != nil {
		return err
	}
	var executable string
	if file {
		args = append([]string{"reload", d.operator}, args[1:]...) // without "run"
		executable, err = nested.Build(ctx, serveProgram, d.stderr)
	} else {
		executable, err = build.into(ctx, first, d.stderr)
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
	if d.prepare {
		defer background(ctx, func(ctx context.Context) { prepareControlPlane(ctx, d.stderr, controlplane.Prepare) })()
	}
	d.explain(kubeconfig, cluster)
	if reloads {
		l := &loop{dev: d, build: build, temp: temp, kubeconfig: kubeconfig, out: &gate{}, files: files, debug: d.debug}
		if cluster != nil {
			l.died = cluster.Done()
		}
		err := l.run(ctx, &revision{path: executable, debug: d.debug}, known)
		if errors.Is(err, errClusterDied) {
			return exitError{exitFailure, fmt.Errorf("%w: %w", err, cluster.Err())}
		}
		return err
	}
	return d.stop.supervise(cluster, process{
		path: executable,
		args: args,
		env:  d.environment(kubeconfig),
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
	cluster, err := controlplane.Start(ctx, controlplane.Options{Data: d.data, Memory: d.memory, Progress: &offer{to: d.stderr, memory: d.memory}})
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
		what := "Kubernetes " + cluster.Version()
		if d.memory {
			what = "The in-memory API server " + cluster.Version() + " (it differs from a real cluster: see gopf dev --help; --real starts a real one)"
		}
		if d.data != "" {
			kept = "kept in " + d.data
		}
		fmt.Fprintf(d.stderr, "%s is running on %s; its objects are %s. ", what, cluster.Server(), kept)
	}
	fmt.Fprintf(d.stderr, `In another terminal:

  export KUBECONFIG=%s
  kubectl get all    # no kubectl? "make kubectl" in a checkout of gopf builds one

`, kubeconfig)
	if link := d.link(); link != "" {
		fmt.Fprintf(d.stderr, "The page of the operator: %s\n", link)
	}
	fmt.Fprint(d.stderr, "Running the operator; stop everything with Ctrl-C.\n\n")
}

// offer forwards progress messages. After the first one about the build of a control plane, it
// adds a hint about --memory.
type offer struct {
	to     io.Writer
	memory bool
	told   bool
}

// Write implements io.Writer.
func (o *offer) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	if err == nil && !o.memory && !o.told {
		o.told = true
		_, err = fmt.Fprintln(o.to, "To start within a minute on an in-memory API server instead, press Ctrl-C and add --memory.")
	}
	return n, err
}
