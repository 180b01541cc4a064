// Package manifest creates objects from YAML templates, for example from files that are
// embedded in the program:
//
//	//go:embed children.yaml
//	var files embed.FS
//
//	children, err := manifest.Render(files, "children.yaml", c.Object)
//	if err != nil {
//		return err
//	}
//	for _, child := range children {
//		if err := c.API.Apply(ctx, child, client.OwnedBy(c.Object)); err != nil {
//			return err
//		}
//	}
//
// It is not a part of package client, because text/template makes programs larger.
package manifest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"gopf.dev/gopf/internal/jsonvalue"
)

// Render executes a template and returns the objects of the YAML documents in it. Empty
// documents are skipped. The template is a file of text/template, and data is its ".".
//
//	apiVersion: v1
//	kind: ConfigMap
//	metadata:
//	  name: {{ .Name }}-settings
//	data:
//	  size: "{{ .Spec.Size }}"
//	{{- range .Spec.Options }}
//	  {{ .Key }}: {{ .Value }}
//	{{- end }}
//
// Values cannot change the structure of the YAML: each stays within the scalar that it
// stands in, whatever characters it has. A scalar that is one value alone has its type: a
// number stays a number, a map or a list becomes that part of the object, and a string
// stays a string, even if it looks like a number. A value in quotes, a value with other text
// around it, and a key are text. A missing key of a map is an error. So are more than 20,000 printed
// values, values of more than 4 MiB, and YAML of more than 4 MiB.
func Render(files fs.FS, name string, data any) ([]*unstructured.Unstructured, error) {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, fmt.Errorf("render: %w", err)
	}
	out, values, err := execute(name, string(text), data)
	if err != nil {
		return nil, fmt.Errorf("render: %w", err)
	}
	var objects []*unstructured.Unstructured
	docs := yaml.NewYAMLReader(newLineReader(out))
	for n := 1; ; n++ {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("render %s: document %d: %w", name, n, err)
		}
		object, err := values.document(doc)
		if err != nil {
			return nil, fmt.Errorf("render %s: document %d: %w", name, n, err)
		}
		if object != nil {
			objects = append(objects, object)
		}
	}
}

// document parses one YAML document. nil means that it is empty.
func (v *values) document(doc []byte) (*unstructured.Unstructured, error) {
	raw, err := sigsyaml.YAMLToJSONStrict(doc)
	if err != nil {
		return nil, errors.New(v.readable(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")))
	}
	tree, err := jsonvalue.Decode(raw)
	if err != nil || tree == nil {
		return nil, err
	}
	filled, err := v.fill(tree)
	if err != nil {
		return nil, err
	}
	fields, ok := filled.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("it is a %T, not an object", filled)
	}
	object := &unstructured.Unstructured{Object: fields}
	if object.GetAPIVersion() == "" || object.GetKind() == "" {
		return nil, errors.New("it has no apiVersion or no kind")
	}
	return object, nil
}
