// Command demo is run by "make demo", which also builds the programs that it starts. It runs
// the first example on an in-memory Kubernetes API, creates an object, and shows it after it
// was handled. With REAL=1, it runs on a real control plane instead. With ONCE=1, it exits by
// itself, successfully only if the object was handled.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"

	"gopf.dev/gopf/internal/dev/controlplane"
	"gopf.dev/gopf/internal/dev/manifests"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv("ONCE") != "", os.Getenv("REAL") == ""); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, once, memory bool) error {
	own, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the programs of the demo: %w", err)
	}
	programs, suffix := filepath.Dir(own), filepath.Ext(own) // ".exe" on Windows
	options := controlplane.Options{Memory: memory, Progress: os.Stderr}
	if memory {
		options.Executable = filepath.Join(programs, "gopf-memory"+suffix)
	}
	cluster, err := controlplane.Start(ctx, options)
	if err != nil {
		return err
	}
	defer func() { _ = cluster.Stop() }()
	if memory {
		say("An in-memory Kubernetes API, %s, is running on %s. It has no controllers; make demo REAL=1 starts a real control plane.",
			cluster.Version(), cluster.Server())
	} else {
		say("Kubernetes %s is running on %s.", cluster.Version(), cluster.Server())
	}
	if err := apply(ctx, cluster, "examples/crd.yaml"); err != nil {
		return err
	}

	args := []string{"run", "--all-namespaces", "--standalone"}
	say("Starting the operator: examples/01-minimal %s", strings.Join(args, " "))
	process := exec.Command(filepath.Join(programs, "01-minimal"+suffix), args...)
	process.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig())
	process.Stdout, process.Stderr = os.Stdout, os.Stderr
	process.SysProcAttr = ownGroup() // Ctrl-C is for this process, which stops everything in order
	if err := process.Start(); err != nil {
		return err
	}
	exited := make(chan error, 1)
	go func() { exited <- process.Wait() }()
	defer func() { _ = process.Process.Signal(os.Interrupt); <-exited }()

	if err := apply(ctx, cluster, "examples/obj.yaml"); err != nil {
		return err
	}
	handled, err := await(ctx, cluster, exited)
	if err != nil {
		return err
	}
	show(handled)
	if once {
		return nil
	}
	say("The operator keeps running. In another terminal:\n\n  export KUBECONFIG=%s\n  kubectl get kex    # no kubectl? make kubectl, then bin/kubectl\n\nPress Ctrl-C to stop it.", cluster.Kubeconfig())
	select {
	case <-ctx.Done():
		return nil
	case err := <-exited:
		exited <- err
		return fmt.Errorf("the operator exited: %w", err)
	case <-cluster.Done():
		return cluster.Err()
	}
}

func say(format string, args ...any) { fmt.Printf("\n"+format+"\n", args...) }

func apply(ctx context.Context, cluster *controlplane.ControlPlane, path string) error {
	objects, err := manifests.Read(path)
	if err != nil {
		return err
	}
	config, _, err := kube.LoadConfig(cluster.Kubeconfig(), "")
	if err != nil {
		return err
	}
	return manifests.Apply(ctx, config, objects, func(o manifests.Object) { say("Applied %v from %s.", o, path) })
}

// await reads the object until it is handled: its status contains the handler's result, and
// the last-handled configuration matches the object.
func await(ctx context.Context, cluster *controlplane.ControlPlane, exited chan error) (*object.Body, error) {
	config, _, err := kube.LoadConfig(cluster.Kubeconfig(), "")
	if err != nil {
		return nil, err
	}
	client, err := kube.NewClient(config, kube.DefaultOptions())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	target := kube.Target{
		Info:      kind.Info{Group: "kopf.dev", Version: "v1", Plural: "kopfexamples", Namespaced: true},
		Namespace: "default", Name: "kopf-example-1",
	}
	deadline := time.After(30 * time.Second)
	for {
		body, err := client.Get(ctx, target)
		if err != nil {
			return nil, err
		}
		if isHandled(body) {
			return body, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case err := <-exited:
			exited <- err
			return nil, fmt.Errorf("the operator exited: %w", err)
		case <-deadline:
			return nil, errors.New("the object was not handled within 30 seconds")
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func isHandled(body *object.Body) bool {
	message, _ := body.Lookup("status", "create_fn", "message")
	stored, _ := body.Annotations()[lastHandled].(string)
	var base any
	return message == "hello world" && json.Unmarshal([]byte(stored), &base) == nil && reflect.DeepEqual(base, essence(body))
}

const (
	own         = "kopf.zalando.org/" // prefix of the operator's annotations
	lastHandled = own + "last-handled-configuration"
)

// essence returns the part of the object that must have been handled: its spec, labels, and
// annotations, except those of the operator.
func essence(body *object.Body) any {
	spec, _ := body.Lookup("spec")
	labels, _ := body.Lookup("metadata", "labels")
	annotations := maps.Clone(body.Annotations())
	maps.DeleteFunc(annotations, func(key string, _ any) bool { return strings.HasPrefix(key, own) })
	return map[string]any{"spec": spec, "metadata": map[string]any{"labels": labels, "annotations": annotations}}
}

func show(body *object.Body) {
	text, err := yaml.JSONToYAML(body.Raw())
	if err != nil {
		text = body.Raw()
	}
	say("The operator has handled the object:\n\n%s", text)
}
