// Package manifests reads Kubernetes manifests, and applies them to a cluster in a working
// order.
package manifests

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Object is one object of a manifest.
type Object struct {
	*unstructured.Unstructured

	// Source is the origin for messages: the file, and the number of the document if the
	// file has several.
	Source string
}

// String names the object and its kind, like "ConfigMap default/settings".
func (o Object) String() string {
	name := o.GetName()
	if name == "" {
		name = o.GetGenerateName() + "…"
	}
	if ns := o.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	return o.GetKind() + " " + name
}

// extensions are the extensions of files that are read from folders.
var extensions = []string{".yaml", ".yml", ".json"}

// Read returns the objects in the files, in order. Files contain JSON or YAML, the latter
// with any number of documents. A list stands for its items. In a folder, it reads all
// files with the known extensions, in lexical order, but no subfolders. Errors name the
// file and the document, and match [fs.ErrNotExist] if a path does not exist.
func Read(paths ...string) ([]Object, error) {
	var objects []Object
	for _, path := range paths {
		files, err := expand(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			found, err := readFile(file)
			if err != nil {
				return nil, err
			}
			objects = append(objects, found...)
		}
	}
	return objects, nil
}

// expand returns the files of a path.
func expand(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		if !entry.IsDir() && slices.Contains(extensions, filepath.Ext(entry.Name())) {
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("folder %s contains no *.yaml, *.yml or *.json files", path)
	}
	return files, nil
}

func readFile(path string) ([]Object, error) {
	documents, err := split(path)
	if err != nil {
		return nil, err
	}
	var objects []Object
	for i, document := range documents {
		source := path
		if len(documents) > 1 {
			source = fmt.Sprintf("%s, document %d", path, i+1)
		}
		found, err := parse(document, source)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", source, err)
		}
		objects = append(objects, found...)
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("%s: the file contains no objects", path)
	}
	return objects, nil
}

// split returns the documents of a file.
func split(path string) ([][]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var documents [][]byte
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		documents = append(documents, document)
	}
}

// parse parses one document, which may be empty.
func parse(document []byte, source string) ([]Object, error) {
	encoded, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(encoded, []byte("null")) {
		return nil, nil
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(encoded, &object.Object); err != nil {
		return nil, errNoObject
	}
	if !object.IsList() {
		return check(object, source)
	}
	list, err := object.ToList()
	if err != nil {
		return nil, err
	}
	var objects []Object
	for i := range list.Items {
		found, err := check(&list.Items[i], source)
		if err != nil {
			return nil, fmt.Errorf("item %d: %w", i+1, err)
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

// errNoObject means that a document is not a Kubernetes object.
var errNoObject = errors.New("not a Kubernetes object: apiVersion, kind and metadata are required")

// check rejects objects that the API server would reject without naming the file.
func check(object *unstructured.Unstructured, source string) ([]Object, error) {
	if object.GetKind() == "" || object.GetAPIVersion() == "" {
		return nil, errNoObject
	}
	if object.GetName() == "" && object.GetGenerateName() == "" {
		return nil, fmt.Errorf("metadata.name of the %s is missing", object.GetKind())
	}
	return []Object{{Unstructured: object, Source: source}}, nil
}
