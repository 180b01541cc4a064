package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/dev/manifests"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/serve/spec"
)

// installAtStartup applies the definitions of the file before the operator serves them.
func installAtStartup(op *gopf.Operator, dir, base string, flags []string) {
	op.OnStartup("serve-definitions", func(ctx context.Context, _ *gopf.Activity) error {
		return applyDefinitions(ctx, dir, base, flags)
	})
}

// applyDefinitions applies the custom resource definitions that the file names. It uses
// the kubeconfig of the operator's flags.
func applyDefinitions(ctx context.Context, dir, base string, flags []string) error {
	op, _ := spec.Load(os.DirFS(dir), base) // it was checked before
	var files []string
	for _, r := range op.Resources {
		if r.Definition != "" {
			files = append(files, filepath.Join(dir, filepath.FromSlash(r.Definition)))
		}
	}
	if len(files) == 0 {
		return nil
	}
	objects, err := manifests.Read(files...)
	if err != nil {
		return fmt.Errorf("read the definitions: %w", err)
	}
	config, _, err := kube.LoadConfig(flagValue(flags, "kubeconfig"), flagValue(flags, "context"))
	if err != nil {
		return err
	}
	return manifests.Apply(ctx, config, objects, func(manifests.Object) {})
}

// flagValue returns the value of a flag on the command line.
func flagValue(flags []string, name string) string {
	for i, f := range flags {
		if value, ok := strings.CutPrefix(f, "--"+name+"="); ok {
			return value
		}
		if f == "--"+name && i+1 < len(flags) {
			return flags[i+1]
		}
	}
	return ""
}
