package main

import (
	"errors"
	"fmt"
	"os/exec"

	"github.com/spf13/cobra"

	"gopf.dev/gopf/internal/dev/controlplane"
)

// newExec returns the command "exec". Makefiles use it: all test packages that run under it
// share one control plane.
func newExec(stop *interrupt) *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use:   "exec [flags] -- COMMAND [ARGS]",
		Short: "Run a command with a local Kubernetes control plane",
		Long: `Start a local Kubernetes control plane, run the command, and stop the control plane.
The environment variables KUBECONFIG and ` + controlplane.KubeconfigVariable + ` contain the path of its
kubeconfig. The exit code is that of the command.`,
		Example: "  gopf exec -- go test ./...\n  gopf exec --data ./cluster -- kubectl get namespaces",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || cmd.ArgsLenAtDash() != 0 {
				return errors.New("the command is missing; put it after --, as in 'gopf exec -- go test ./...'")
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
	cmd.Flags().StringVar(&data, "data", "", "`folder` to keep the cluster in for the next run; default: the cluster is deleted at the end")
	return cmd
}
