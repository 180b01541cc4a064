package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gopf.dev/gopf/internal/breaking"
	"gopf.dev/gopf/internal/deploy"
	"gopf.dev/gopf/internal/describe"
	"gopf.dev/gopf/internal/dev/manifests"
	"gopf.dev/gopf/internal/kube"
)

// applyChanged applies the manifests among the saved files, and returns notes about them.
func (l *loop) applyChanged(ctx context.Context, saved []string) (notes []string) {
	var paths []string
	for _, path := range saved {
		if _, err := os.Stat(path); err == nil && !l.isCode(path) {
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		return nil
	}
	objects, err := manifests.Read(paths...)
	if err != nil {
		return []string{"not applied: " + firstLine(err.Error(), err)}
	}
	return l.applyObjects(ctx, objects)
}

// applyObjects applies objects, and returns notes about them.
func (l *loop) applyObjects(ctx context.Context, objects []manifests.Object) []string {
	config, _, err := kube.LoadConfig(l.kubeconfig, "")
	if err != nil {
		return []string{"not applied: " + err.Error()}
	}
	var names []string
	err = manifests.Apply(ctx, config, objects, func(o manifests.Object) { names = append(names, fmt.Sprint(o)) })
	if err != nil {
		return []string{"not applied: " + firstLine(err.Error(), err)}
	}
	return []string{"applied " + strings.Join(names, ", ")}
}

// define derives the custom resource definitions from the types of a new build, if a file
// with types was saved and the project has definitions in deploy/crd.yaml. It writes and
// applies them if they differ. Definitions that break their users wait for the user.
func (l *loop) define(ctx context.Context, v *revision, a *attempt) {
	path := filepath.Join(l.operator, "deploy", "crd.yaml")
	before, err := os.ReadFile(path)
	if err != nil || v.describe == nil || !slices.ContainsFunc(a.saved, hasTypes) {
		return
	}
	note := func(format string, args ...any) { a.notes = append(a.notes, fmt.Sprintf(format, args...)) }
	operator, err := describe.Parse(v.describe)
	if err != nil {
		note("crd.yaml is unchanged: %v", err)
		return
	}
	d := &deployment{path: l.operator, folder: filepath.Dir(path), module: l.build.dir, text: v.describe}
	if d.options, err = deploy.ReadOptions(filepath.Join(l.operator, deploy.OptionsFile), l.build.name); err != nil {
		note("crd.yaml is unchanged: %v", err)
		return
	}
	if d.crds, err = d.define(ctx, operator, l.stderr); err != nil || len(d.crds) == 0 {
		if err != nil {
			note("crd.yaml is unchanged: %s", firstLine(err.Error(), err))
		}
		return
	}
	d.model = deploy.NewModel(d.options, operator, d.crds)
	files, err := d.files()
	if err != nil {
		note("crd.yaml is unchanged: %s", firstLine(err.Error(), err))
		return
	}
	after := files["crd.yaml"]
	if after == nil || bytes.Equal(before, after) {
		return
	}
	changes := breaksOf(before, after)
	if err := os.WriteFile(path, after, 0o644); err != nil {
		note("%v", err)
		return
	}
	objects, err := manifests.Read(path)
	if err != nil {
		note("crd.yaml is not applied: %v", err)
		return
	}
	if len(changes) > 0 {
		note("crd.yaml changed, and breaks stored objects: %s; press a to apply it", changes[0])
		a.breaks = objects
		return
	}
	note("crd.yaml changed")
	a.notes = append(a.notes, l.applyObjects(ctx, objects)...)
}

// breaksOf returns the changes between two files of definitions that break their users.
func breaksOf(before, after []byte) []breaking.Change {
	old, err := deploy.Decode(before)
	if err != nil {
		return nil
	}
	fresh, err := deploy.Decode(after)
	if err != nil {
		return nil
	}
	return breaking.Compare(old, fresh)
}

// hasTypes reports whether a Go file may declare types of objects: it has JSON tags.
func hasTypes(path string) bool {
	if !isSource(filepath.Base(path)) || strings.HasSuffix(path, "_test.go") {
		return false
	}
	text, err := os.ReadFile(path)
	return err == nil && bytes.Contains(text, []byte("`json:"))
}
