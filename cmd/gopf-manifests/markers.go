package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-tools/pkg/crd"
	crdmarkers "sigs.k8s.io/controller-tools/pkg/crd/markers"
	"sigs.k8s.io/controller-tools/pkg/markers"
)

// Markers of gopf, for facts that kubebuilder has no markers for.
const (
	strictStatus  = "gopf:status:strict"     // the status of the type has only declared fields
	acceptedBreak = "gopf:breaking:accepted" // a breaking change of the field, or of the fields of the type, is accepted
)

// acceptedAnnotation is the annotation with the accepted changes, which gopf reads.
const acceptedAnnotation = "gopf.dev/accepted-breaks"

func registerOwn(into *markers.Registry) error {
	return errors.Join(
		into.Register(markers.Must(markers.MakeDefinition(strictStatus, markers.DescribesType, struct{}{}))),
		into.Register(markers.Must(markers.MakeDefinition(acceptedBreak, markers.DescribesType, accepted("")))),
		into.Register(markers.Must(markers.MakeDefinition(acceptedBreak, markers.DescribesField, accepted("")))),
	)
}

// accepted is the reason for a breaking change.
type accepted string

// begin and end enclose a reason in the description of a field, because schemas have no
// other place for it while they are generated.
const begin, end = "\x00accepted ", "\x00"

var _ crd.SchemaMarker = accepted("")

// ApplyToSchema implements the interface of markers for schemas.
func (a accepted) ApplyToSchema(_ *crdmarkers.SchemaContext, s *apiextensionsv1.JSONSchemaProps) error {
	if strings.TrimSpace(string(a)) == "" {
		return fmt.Errorf("+%s needs a reason", acceptedBreak)
	}
	s.Description += begin + string(a) + end
	return nil
}

// acceptBreaks moves the reasons from the descriptions to an annotation.
func acceptBreaks(one *apiextensionsv1.CustomResourceDefinition) {
	reasons := map[string]string{}
	for i := range one.Spec.Versions {
		v := &one.Spec.Versions[i]
		takeReasons(v.Schema.OpenAPIV3Schema, "", func(path, reason string) { reasons[v.Name+" "+path] = reason })
	}
	if len(reasons) == 0 {
		return
	}
	text, err := json.Marshal(reasons)
	if err != nil {
		panic(fmt.Sprintf("encode the accepted changes: %v", err)) // they are strings
	}
	if one.Annotations == nil {
		one.Annotations = map[string]string{}
	}
	one.Annotations[acceptedAnnotation] = string(text)
}

// takeReasons removes the reasons from a schema. Paths are those of the check of changes:
// dotted, with [] for list items and {} for map values.
func takeReasons(s *apiextensionsv1.JSONSchemaProps, path string, found func(path, reason string)) {
	for {
		before, rest, ok := strings.Cut(s.Description, begin)
		if !ok {
			break
		}
		reason, after, _ := strings.Cut(rest, end)
		s.Description = strings.TrimSpace(before + after)
		found(path, reason)
	}
	for _, key := range slices.Sorted(maps.Keys(s.Properties)) {
		field := s.Properties[key]
		takeReasons(&field, strings.TrimPrefix(path+"."+key, "."), found)
		s.Properties[key] = field
	}
	if s.Items != nil && s.Items.Schema != nil {
		takeReasons(s.Items.Schema, path+"[]", found)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		takeReasons(s.AdditionalProperties.Schema, path+"{}", found)
	}
}
