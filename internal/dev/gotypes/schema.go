package gotypes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/util/yaml"
)

// definition is the part of a custom resource definition that matters here.
type definition struct {
	Kind string `json:"kind"`
	Spec struct {
		Group string `json:"group"`
		Names struct {
			Kind   string `json:"kind"`
			Plural string `json:"plural"`
		} `json:"names"`
		Versions []version `json:"versions"`
	} `json:"spec"`
}

type version struct {
	Name    string `json:"name"`
	Storage bool   `json:"storage"`
	Schema  struct {
		OpenAPI *schema `json:"openAPIV3Schema"`
	} `json:"schema"`
}

// schema is a structural schema.
type schema struct {
	Description string             `json:"description"`
	Type        string             `json:"type"`
	Format      string             `json:"format"`
	Pattern     string             `json:"pattern"`
	Nullable    bool               `json:"nullable"`
	Required    []string           `json:"required"`
	Enum        []any              `json:"enum"`
	Default     any                `json:"default"`
	Items       *schema            `json:"items"`
	Properties  map[string]*schema `json:"properties"`
	Additional  additional         `json:"additionalProperties"`
	IntOrString bool               `json:"x-kubernetes-int-or-string"`
	Embedded    bool               `json:"x-kubernetes-embedded-resource"`
}

// additional is the schema of the values of a map. In the YAML, it may be true instead.
type additional struct{ of *schema }

func (a *additional) UnmarshalJSON(text []byte) error {
	if text[0] != '{' {
		return nil // true or false
	}
	return json.Unmarshal(text, &a.of)
}

// definitions returns the custom resource definitions of a YAML or JSON text.
func definitions(text []byte) (all []definition, err error) {
	docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var d definition
		switch err := docs.Decode(&d); {
		case errors.Is(err, io.EOF) && len(all) == 0:
			return nil, errors.New("there is no CustomResourceDefinition")
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		case d.Kind == "CustomResourceDefinition":
			all = append(all, d)
		}
	}
}

// pick returns the versions to write: the named one, all if the name is "all", or the
// stored one if the name is empty.
func (d *definition) pick(name string) ([]version, error) {
	var picked []version
	for _, v := range d.Spec.Versions {
		if name == "all" || v.Name == name || name == "" && v.Storage {
			picked = append(picked, v)
		}
	}
	if len(picked) == 0 {
		return nil, fmt.Errorf("%s.%s has no version %q", d.Spec.Names.Plural, d.Spec.Group, name)
	}
	return picked, nil
}
