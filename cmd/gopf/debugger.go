package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

// debuggerAddress is the port that editors connect to by default.
const debuggerAddress = "127.0.0.1:2345"

const noDebugger = "there is no dlv in PATH; install it by: go install github.com/go-delve/delve/cmd/dlv@latest"

// debuggerPath returns the path of delve, or an empty string.
func debuggerPath() string {
	if path, err := exec.LookPath("dlv"); err == nil {
		return path
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	path := filepath.Join(home, "go", "bin", "dlv")
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// debuggerCommand returns the command that runs the operator under delve. The operator starts
// at once; editors may connect and disconnect at any time.
func debuggerCommand(operator string, args []string) (string, []string) {
	return debuggerPath(), append([]string{"exec", "--headless", "--listen=" + debuggerAddress, "--api-version=2",
		"--accept-multiclient", "--continue", operator, "--"}, args...)
}

// debuggerLease is the duration of leases of operators that run under a debugger, as package
// cli sets it.
const debuggerLease = 8 * time.Hour

// releaseLeases deletes the leases of operators that ran under a debugger. The debugger kills
// them, so they cannot release their leases, and the next operator would wait for hours.
func releaseLeases(ctx context.Context, kubeconfig string) error {
	config, _, err := kube.LoadConfig(kubeconfig, "")
	if err != nil {
		return err
	}
	client, err := kube.NewClient(config, kube.DefaultOptions())
	if err != nil {
		return err
	}
	defer client.Close()
	leases := kind.Info{Group: "coordination.k8s.io", Version: "v1", Plural: "leases", Kind: "Lease", Namespaced: true}
	var left []kube.Target
	_, err = client.List(ctx, leases, "", kube.ListOptions{}, func(body *object.Body) error {
		var lease struct {
			Spec struct {
				Seconds int `json:"leaseDurationSeconds"`
			} `json:"spec"`
		}
		if err := json.Unmarshal(body.Raw(), &lease); err != nil {
			return err
		}
		if time.Duration(lease.Spec.Seconds)*time.Second == debuggerLease {
			left = append(left, kube.Target{Info: leases, Namespace: body.Namespace, Name: body.Name})
		}
		return nil
	})
	for _, target := range left {
		if err == nil {
			err = client.Delete(ctx, target, kube.DeleteOptions{})
		}
	}
	return err
}
