package gopftest

import (
	"fmt"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// derivedKindAnnotation marks definitions that were made from a resource name only.
// Their kind is a guess until the first object is created.
const derivedKindAnnotation = "gopftest.gopf.dev/derived-kind"

func crdResource() schema.GroupResource {
	return schema.GroupResource{Group: apiextensionsv1.GroupName, Resource: "customresourcedefinitions"}
}

// serveBuiltin makes the cluster serve a well-known kind.
func (c *Cluster) serveBuiltin(b *builtin) {
	res := &resource{Kind: b.Kind, builtin: b}
	if res.Singular == "" {
		res.Singular = strings.ToLower(res.Kind.Kind)
	}
	served := &servedVersion{name: b.Version, status: b.StatusSubresource, fields: b.fields, table: newTableLayout(nil)}
	if b.scales {
		served.scale = &scalePaths{wanted: ".spec.replicas", there: ".status.replicas", selector: ".spec.selector"}
	}
	res.versions = []*servedVersion{served}
	c.kinds.put(res)
}

// define makes the cluster serve a kind. A custom resource gets a definition that
// accepts all fields.
func (c *Cluster) define(k Kind) error {
	if k.Version == "" || k.Plural == "" {
		return fmt.Errorf("kind %+v: version or plural is missing", k)
	}
	known, ok := lookupBuiltin(func(b *builtin) bool { return b.groupResource() == k.groupResource() })
	switch {
	case ok && !known.custom:
		known.Kind.Version = k.Version
		c.serveBuiltin(known)
		return nil
	case !strings.Contains(k.Group, "."):
		return fmt.Errorf("kind %s in group %q is unknown; the group of a custom resource must contain a dot", k.Plural, k.Group)
	}
	return c.applyCRD(k.named(), k.Kind == "")
}

// applyCRD creates the definition, or adds the version to an existing one.
func (c *Cluster) applyCRD(k Kind, derived bool) error {
	crd := newCRD(k)
	if derived {
		crd.Annotations = map[string]string{derivedKindAnnotation: "true"}
	}
	res, _ := c.kinds.byName(crdResource())
	s := &scope{cluster: c, resource: res, version: res.versions[0], name: crd.Name}
	existing, err := s.get()
	if err != nil {
		_, err = s.create(mustUnstructured(crd))
		return err
	}
	old := decodeCRD(existing.object())
	added := crd.Spec.Versions[0]
	added.Storage = false
	old.Spec.Versions = append(old.Spec.Versions, added)
	_, err = s.update(mustUnstructured(old))
	return err
}

func newCRD(k Kind) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: k.groupResource().String()},
	}
	anything := &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	version := apiextensionsv1.CustomResourceDefinitionVersion{
		Name: k.Version, Served: true, Storage: true,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: anything},
	}
	if k.StatusSubresource {
		version.Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
	}
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: k.Group, Scope: apiextensionsv1.ClusterScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{
			Plural: k.Plural, Singular: k.Singular, Kind: k.Kind, ListKind: k.Kind + "List",
			ShortNames: k.ShortNames, Categories: k.Categories,
		},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version},
	}
	if k.Namespaced {
		crd.Spec.Scope = apiextensionsv1.NamespaceScoped
	}
	return crd
}

// decodeCRD decodes a stored definition. It was validated when it was stored.
func decodeCRD(obj *unstructured.Unstructured) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, crd); err != nil {
		panic(fmt.Sprintf("gopftest: decode a stored custom resource definition: %v", err))
	}
	return crd
}

func mustUnstructured(obj any) *unstructured.Unstructured {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		panic(fmt.Sprintf("gopftest: %v", err)) // our own types always convert
	}
	return &unstructured.Unstructured{Object: content}
}

// establish serves the resource of a definition and sets the definition's status. The
// store must be locked.
func (c *Cluster) establish(e *entry) {
	crd := decodeCRD(e.object())
	c.kinds.put(resourceOf(crd))
	if len(crd.Status.Conditions) > 0 {
		return
	}
	now := metav1.NewTime(time.Now().UTC().Truncate(time.Second))
	for _, condition := range []apiextensionsv1.CustomResourceDefinitionCondition{
		{Type: apiextensionsv1.NamesAccepted, Reason: "NoConflicts", Message: "no conflicts found"},
		{Type: apiextensionsv1.Established, Reason: "InitialNamesAccepted", Message: "the initial names have been accepted"},
	} {
		condition.Status, condition.LastTransitionTime, condition.ObservedGeneration = apiextensionsv1.ConditionTrue, now, crd.Generation
		crd.Status.Conditions = append(crd.Status.Conditions, condition)
	}
	crd.Status.AcceptedNames = crd.Spec.Names
	c.store.put(crdResource(), mustUnstructured(crd))
}

func resourceOf(crd *apiextensionsv1.CustomResourceDefinition) *resource {
	names := crd.Spec.Names
	res := &resource{
		Kind: Kind{
			Group: crd.Spec.Group, Plural: names.Plural, Kind: names.Kind, Singular: names.Singular,
			ShortNames: names.ShortNames, Categories: names.Categories,
			Namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
		},
		crd:         crd.Name,
		terminating: crd.DeletionTimestamp != nil,
		derivedKind: crd.Annotations[derivedKindAnnotation] == "true",
	}
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			res.Version = v.Name
		}
		if !v.Served {
			continue
		}
		schema, err := parsedSchemas.schemaOf(v.Schema)
		if err != nil {
			panic(fmt.Sprintf("gopftest: the schema of %s passed validation but cannot be used: %v", crd.Name, err))
		}
		served := &servedVersion{
			name:   v.Name,
			status: v.Subresources != nil && v.Subresources.Status != nil,
			schema: schema,
			table:  newTableLayout(v.AdditionalPrinterColumns),
		}
		if v.Schema != nil {
			served.published = v.Schema.OpenAPIV3Schema
		}
		if sub := v.Subresources; sub != nil && sub.Scale != nil {
			served.scale = &scalePaths{wanted: sub.Scale.SpecReplicasPath, there: sub.Scale.StatusReplicasPath}
			if sub.Scale.LabelSelectorPath != nil {
				served.scale.selector = *sub.Scale.LabelSelectorPath
			}
		}
		for _, f := range v.SelectableFields {
			served.fields = append(served.fields, strings.TrimPrefix(f.JSONPath, "."))
		}
		res.versions = append(res.versions, served)
	}
	return res
}

// settleKind replaces a guessed kind by the kind of the first object.
func (s *scope) settleKind(kind string) {
	if !s.resource.derivedKind || !strings.EqualFold(kind, s.resource.Kind.Kind) {
		return
	}
	s.store().mu.Lock()
	defer s.store().mu.Unlock()
	e, ok := s.store().table(crdResource()).objects[objectKey{name: s.resource.crd}]
	if !ok {
		return
	}
	crd := e.object()
	unstructured.RemoveNestedField(crd.Object, "metadata", "annotations", derivedKindAnnotation)
	for _, at := range [][]string{{"spec", "names"}, {"status", "acceptedNames"}} {
		_ = unstructured.SetNestedField(crd.Object, kind, append(at, "kind")...)
		_ = unstructured.SetNestedField(crd.Object, kind+"List", append(at, "listKind")...)
	}
	s.store().put(crdResource(), crd)
	s.resource, _ = s.cluster.kinds.byName(s.resource.groupResource())
}
