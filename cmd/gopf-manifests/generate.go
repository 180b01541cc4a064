package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/token"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-tools/pkg/crd"
	crdmarkers "sigs.k8s.io/controller-tools/pkg/crd/markers"
	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/controller-tools/pkg/markers"
)

// Generate returns the definitions as decoded JSON, sorted by name.
func Generate(r Request) ([]map[string]any, error) {
	roots, err := load(r)
	if err != nil {
		return nil, err
	}
	byName := map[string][]*apiextensionsv1.CustomResourceDefinition{} // one for each version
	for _, t := range r.Types {
		pkg := roots[t.Package]
		if pkg == nil {
			return nil, fmt.Errorf("the package %s of the type %s cannot be loaded", t.Package, t.Name)
		}
		one, err := r.define(pkg, t)
		if err != nil {
			return nil, fmt.Errorf("the definition of %s: %w", t.Name, err)
		}
		byName[one.Name] = append(byName[one.Name], one)
	}
	var all []map[string]any
	for name, versions := range byName {
		one, err := joined(versions)
		if err != nil {
			return nil, fmt.Errorf("the definition %s: %w", name, err)
		}
		decoded, err := decoded(one)
		if err != nil {
			return nil, err
		}
		all = append(all, decoded)
	}
	slices.SortFunc(all, func(a, b map[string]any) int { return strings.Compare(name(a), name(b)) })
	return all, nil
}

func name(crd map[string]any) string { return crd["metadata"].(map[string]any)["name"].(string) }

// load loads the packages of the types, with their anonymous structs moved to named types.
func load(r Request) (map[string]*loader.Package, error) {
	paths := map[string]string{} // pattern to the name in the request
	var patterns []string
	for _, t := range r.Types {
		pattern := t.Package
		if pattern == "main" {
			pattern = r.Main
		}
		if _, known := paths[pattern]; !known {
			paths[pattern] = t.Package
			patterns = append(patterns, pattern)
		}
	}
	files := token.NewFileSet()
	all := map[string]*loader.Package{}
	for _, pattern := range patterns {
		found, err := loader.LoadRootsWithConfig(&packages.Config{Dir: r.Dir, Fset: files, Mode: packages.NeedModule}, pattern)
		if err != nil {
			return nil, fmt.Errorf("load %s: %w", pattern, err)
		}
		if len(found) != 1 {
			return nil, fmt.Errorf("load %s: %d packages match", pattern, len(found))
		}
		if err := hoistAll(found[0], files); err != nil {
			return nil, err
		}
		all[paths[pattern]] = found[0]
	}
	return all, nil
}

// hoistAll moves the anonymous structs of the package, and of the packages of its module
// that it imports, to named types. Other modules are left as they are.
func hoistAll(root *loader.Package, files *token.FileSet) error {
	done := map[*loader.Package]bool{}
	var visit func(p *loader.Package) error
	visit = func(p *loader.Package) error {
		if done[p] || p.Module == nil || !p.Module.Main {
			return nil
		}
		done[p] = true
		syntax, err := hoistFiles(p.CompiledGoFiles, files)
		if err != nil {
			return err
		}
		p.Syntax = syntax
		for _, imported := range p.Imports() {
			if err := visit(imported); err != nil {
				return err
			}
		}
		return nil
	}
	return visit(root)
}

// define returns the definition of one type.
func (r Request) define(pkg *loader.Package, t Type) (*apiextensionsv1.CustomResourceDefinition, error) {
	registry := &markers.Registry{}
	if err := errors.Join(crdmarkers.Register(registry), registerOwn(registry)); err != nil {
		return nil, err
	}
	parser := &crd.Parser{
		Collector: &markers.Collector{Registry: registry}, Checker: &loader.TypeChecker{},
		IgnoreUnexportedFields: true,
	}
	crd.AddKnownTypes(parser)
	parser.NeedPackage(pkg)
	info := parser.LookupType(pkg, t.Name)
	if info == nil {
		return nil, fmt.Errorf("there is no such type in %s; a kind cannot have type parameters", pkg.PkgPath)
	}
	// Groups and versions are those of the declarations, instead of markers and folders.
	clear(parser.GroupVersions)
	parser.GroupVersions[pkg] = schema.GroupVersion{Group: t.Group, Version: t.Version}
	kind := schema.GroupKind{Group: t.Group, Kind: t.Name}
	before := len(pkg.Errors)
	parser.NeedCRDFor(kind, nil)
	if err := problems(pkg, before); err != nil {
		return nil, err
	}
	one, ok := parser.CustomResourceDefinitions[kind]
	if !ok {
		return nil, errors.New("no definition was generated")
	}
	crd.FixTopLevelMetadata(one)
	if t.Plural != "" {
		one.Spec.Names.Plural = t.Plural
		one.Name = t.Plural + "." + t.Group
	}
	acceptBreaks(&one)
	if r.NoDocs {
		for i := range one.Spec.Versions {
			crd.TruncateDescription(one.Spec.Versions[i].Schema.OpenAPIV3Schema, 0)
		}
	}
	r.settleStatus(&one, info.Markers.Get(strictStatus) != nil)
	one.Spec.Versions[0].Storage = info.Markers.Get("kubebuilder:storageversion") != nil
	return &one, nil
}

// problems returns the errors of the package beyond those in before. It leaves out errors of
// the type checker, which complains about packages that the types do not need.
func problems(pkg *loader.Package, before int) error {
	var all []error
	for _, e := range pkg.Errors[min(before, len(pkg.Errors)):] {
		if e.Kind != packages.TypeError {
			all = append(all, e)
		}
	}
	return errors.Join(all...)
}

// settleStatus completes the schema for the operator. The status is a subresource, and keeps
// results of handlers and the state of the operator. The field metadata is not required.
func (r Request) settleStatus(one *apiextensionsv1.CustomResourceDefinition, strict bool) {
	keep := true
	for i := range one.Spec.Versions {
		v := &one.Spec.Versions[i]
		root := v.Schema.OpenAPIV3Schema
		root.Required = slices.DeleteFunc(root.Required, func(f string) bool { return f == "metadata" || f == "status" })
		status, ok := root.Properties["status"]
		if !ok && r.StateKey == "" {
			continue
		}
		if v.Subresources == nil {
			v.Subresources = &apiextensionsv1.CustomResourceSubresources{}
		}
		v.Subresources.Status = &apiextensionsv1.CustomResourceSubresourceStatus{}
		status.Type = "object"
		status.Required = nil // handlers and the framework write parts of the status
		if !strict {
			status.XPreserveUnknownFields = &keep
		}
		if r.StateKey != "" {
			if status.Properties == nil {
				status.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
			}
			state := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep}
			if !r.NoDocs {
				state.Description = "The state of the operator."
			}
			status.Properties[r.StateKey] = state
		}
		if root.Properties == nil {
			root.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
		}
		root.Properties["status"] = status
	}
}

// joined joins the versions of a definition. The marker +kubebuilder:storageversion chooses
// the stored one. Without it, the newest one is stored: v2, v1, v1beta1, v1alpha1. The
// names and scope are those of the stored version.
func joined(all []*apiextensionsv1.CustomResourceDefinition) (*apiextensionsv1.CustomResourceDefinition, error) {
	slices.SortFunc(all, func(a, b *apiextensionsv1.CustomResourceDefinition) int {
		return version.CompareKubeAwareVersionStrings(a.Spec.Versions[0].Name, b.Spec.Versions[0].Name)
	})
	stored := len(all) - 1
	marked := 0
	var versions []apiextensionsv1.CustomResourceDefinitionVersion
	annotations := map[string]string{}
	for i, one := range all {
		if one.Spec.Versions[0].Storage {
			stored = i
			marked++
		}
		if i > 0 && all[i-1].Spec.Versions[0].Name == one.Spec.Versions[0].Name {
			return nil, fmt.Errorf("two types are declared for the version %s", one.Spec.Versions[0].Name)
		}
		versions = append(versions, one.Spec.Versions...)
		if err := mergeAccepted(annotations, one.Annotations); err != nil {
			return nil, err
		}
	}
	if marked > 1 {
		return nil, errors.New("several versions have the marker +kubebuilder:storageversion")
	}
	for i := range versions {
		versions[i].Storage = i == stored
	}
	one := all[stored]
	one.Spec.Versions = versions
	if len(annotations) > 0 {
		one.Annotations = annotations
	}
	return one, nil
}

// mergeAccepted adds annotations. The accepted changes of all versions are one annotation.
func mergeAccepted(into, more map[string]string) error {
	for key, value := range more {
		if key != acceptedAnnotation || into[key] == "" {
			into[key] = value
			continue
		}
		reasons := map[string]string{}
		if err := errors.Join(json.Unmarshal([]byte(into[key]), &reasons), json.Unmarshal([]byte(value), &reasons)); err != nil {
			return err
		}
		text, err := json.Marshal(reasons)
		if err != nil {
			return err
		}
		into[key] = string(text)
	}
	return nil
}

// decoded returns the definition as JSON values, without empty fields.
func decoded(one *apiextensionsv1.CustomResourceDefinition) (map[string]any, error) {
	text, err := json.Marshal(one)
	if err != nil {
		return nil, err
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	delete(all, "status")
	delete(all["metadata"].(map[string]any), "creationTimestamp")
	return all, nil
}
