// Package cluster runs the control plane on which operators are measured. It writes objects
// directly to etcd, so their creation does not disturb the measurement, and it counts the
// requests to the API server.
package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"gopf.dev/gopf/bench/widget"
	"gopf.dev/gopf/internal/dev/controlplane"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/kind"
)

// Cluster is a running control plane.
type Cluster struct {
	plane  *controlplane.ControlPlane
	etcd   *clientv3.Client
	api    *kube.Client
	folder string
	mould  *mould
}

// Start starts a control plane on the folder.
func Start(ctx context.Context, folder string) (*Cluster, error) {
	plane, err := controlplane.Start(ctx, controlplane.Options{Data: folder, Bench: true, Progress: os.Stderr})
	if err != nil {
		return nil, err
	}
	c := &Cluster{plane: plane, folder: folder}
	if err := c.connect(); err != nil {
		_ = c.Stop()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) connect() error {
	config, _, err := kube.LoadConfig(c.plane.Kubeconfig(), "")
	if err != nil {
		return err
	}
	o := kube.DefaultOptions()
	o.UserAgent = "bench"
	if c.api, err = kube.NewClient(config, o); err != nil {
		return err
	}
	c.etcd, err = clientv3.New(clientv3.Config{Endpoints: []string{c.plane.Etcd()}, Logger: zap.NewNop()})
	if err != nil {
		return fmt.Errorf("connect to etcd: %w", err)
	}
	c.mould, err = readMould(c.folder)
	return err
}

// Stop stops the control plane. The folder stays.
func (c *Cluster) Stop() error {
	if c.etcd != nil {
		_ = c.etcd.Close()
	}
	if c.api != nil {
		c.api.Close()
	}
	return c.plane.Stop()
}

// Kubeconfig returns the path of the kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.plane.Kubeconfig() }

// PID returns the process id.
func (c *Cluster) PID() int { return c.plane.PID() }

// Version returns the version of Kubernetes.
func (c *Cluster) Version() string { return c.plane.Version() }

// Copy copies a folder that no control plane uses.
func Copy(from, to string) error {
	if out, err := exec.Command("cp", "-r", "--reflink=auto", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("copy %s: %w: %s", from, err, out)
	}
	return nil
}

// DefineKinds defines all kinds in the cluster.
func (c *Cluster) DefineKinds(ctx context.Context) error {
	for plural, name := range widget.Kinds {
		target := kube.Target{Info: kind.Info{Group: "apiextensions.k8s.io", Version: "v1", Plural: "customresourcedefinitions"}}
		raw, err := json.Marshal(definition(plural, name))
		if err != nil {
			return err
		}
		if _, err := c.api.Create(ctx, target, raw); err != nil {
			return err
		}
	}
	for plural := range widget.Kinds {
		if err := c.awaitKind(ctx, plural); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) awaitKind(ctx context.Context, plural string) (err error) {
	for range 200 {
		if _, err = c.api.WithBackoffs(nil).List(ctx, Info(plural), "", kube.ListOptions{Max: 1}, ignore); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("the kind is not served: %w", err)
}

// Info returns the discovery information of the kind.
func Info(plural string) kind.Info {
	return kind.Info{Group: widget.GroupVersion.Group, Version: widget.GroupVersion.Version, Kind: widget.Kinds[plural], Plural: plural, Namespaced: true}
}

func definition(plural, name string) map[string]any {
	free := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + "." + widget.GroupVersion.Group},
		"spec": map[string]any{
			"group": widget.GroupVersion.Group, "scope": "Namespaced",
			"names": map[string]any{"plural": plural, "kind": name},
			"versions": []any{map[string]any{
				"name": widget.GroupVersion.Version, "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "properties": map[string]any{"spec": free, "status": free},
				}},
			}},
		},
	}
}

// mouldFile returns the file of the mould in the folder of a control plane.
func mouldFile(folder string) string { return filepath.Join(folder, "mould.json") }

// Restart stops the control plane and starts it again on the same port.
func (c *Cluster) Restart(ctx context.Context) error {
	if err := c.Stop(); err != nil {
		return err
	}
	fresh, err := Start(ctx, c.folder)
	if err != nil {
		return err
	}
	*c = *fresh
	return nil
}
