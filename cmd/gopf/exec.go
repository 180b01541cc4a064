package main

import (
	"errors"
	"fmt"
	"os/exec"

	"github.com/spf13/cobra"

	"gopf.dev/gopf/internal/controlplane"
)

// newExec is for makefiles: all test packages that run under it share one control
// plane.
func newExec(stop *interrupt) *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use:   "exec [flags] -- COMMAND [ARGS]",
		Short: "Run a command while a Kubernetes control plane is up",
		Long: `Start a Kubernetes control plane, run the command with KUBECONFIG and ` + controlplane.KubeconfigVariable + `
set to its kubeconfig, and stop it. The exit code is the command's.`,
		Example: "  gopf exec -- go test ./...\n  gopf exec --data ./cluster -- kubectl get namespaces",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || cmd.ArgsLenAtDash() != 0 {
				return errors.New("give the command after --")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := exec.LookPath(args[0])
			if err != nil {
				return usageError{err}
			}
			stderr := cmd.ErrOrStderr()
			cluster, err := controlplane.Start(cmd.Context(), controlplane.Options{Data: data, Progress: stderr})
			if err != nil {
				return err
			}
			defer stopCluster(cluster, stderr)
			fmt.Fprintf(stderr, "Kubernetes %s is running on %s.\n", cluster.Version(), cluster.Server())
			return stop.supervise(cluster, process{
				path: path,
				args: args[1:],
				env:  []string{"KUBECONFIG=" + cluster.Kubeconfig(), controlplane.KubeconfigVariable + "=" + cluster.Kubeconfig()},
				name: args[0],
			}, stderr)
		},
	}
	cmd.Flags().StringVar(&data, "data", "", "`folder` that keeps the cluster for the next time; by default it is gone at the end")
	return cmd
}
