package gopftest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Load creates the objects in the given YAML or JSON files. Load your custom resource
// definitions this way, and objects are defaulted and validated as in production. Load
// waits until the definitions are served. On a real cluster, existing objects are kept. Definitions
// stay there after the test, because the next test may need them: deleting a definition
// takes long, and its kind cannot be created meanwhile.
func (c *Cluster) Load(t testing.TB, paths ...string) {
	t.Helper()
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatalf("Load: %v", err)
		}
		docs := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
		for {
			doc, err := docs.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			obj := &unstructured.Unstructured{}
			if err == nil {
				err = yaml.Unmarshal(doc, &obj.Object)
			}
			if err != nil {
				t.Fatalf("Load %s: %v", path, err)
			}
			if len(obj.Object) > 0 {
				c.load(t, obj)
			}
		}
	}
}

func (c *Cluster) load(t testing.TB, obj *unstructured.Unstructured) {
	t.Helper()
	if _, err := c.hand.create(obj); err != nil && !(c.Real() && apierrors.IsAlreadyExists(err)) {
		t.Fatalf("Load: create %s %s: %v", obj.GetKind(), obj.GetName(), err)
	}
	if obj.GetKind() != "CustomResourceDefinition" {
		return
	}
	c.hand.keep(obj.GetKind(), obj.GetName())
	crd := decodeCRD(obj)
	for _, v := range crd.Spec.Versions {
		resource := crd.Spec.Group + "/" + v.Name + "/" + crd.Spec.Names.Plural
		Until(t, resource+" is served", func() bool {
			_, err := c.hand.list(resource, "")
			return err == nil || !v.Served
		})
	}
}
