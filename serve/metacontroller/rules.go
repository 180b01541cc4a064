package metacontroller

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Rule selects related objects of a parent. It is an item of a customize hook's response.
type Rule struct {
	APIVersion        string                `json:"apiVersion"`
	Resource          string                `json:"resource"`
	LabelSelector     *metav1.LabelSelector `json:"labelSelector"`
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
	Namespace         string                `json:"namespace"`
	Names             []string              `json:"names"`
}

// Check reports a rule that selects nothing sensible. parentNamespace is empty for
// cluster-scoped parents. namespaced reports whether the objects of the rule's resource are.
func (r *Rule) Check(version, parentNamespace string, namespaced bool) error {
	switch {
	case len(r.Names) > 0 && (r.LabelSelector != nil || r.NamespaceSelector != nil):
		return fmt.Errorf("related rule cannot have both names and labelSelector/namespaceSelector specified: %s in %s", r.Resource, r.APIVersion)
	case r.Namespace != "" && r.NamespaceSelector != nil:
		return fmt.Errorf("related rule cannot have both namespace and namespaceSelector specified: %s in %s", r.Resource, r.APIVersion)
	case r.NamespaceSelector != nil && version != V2 && parentNamespace != "":
		return errors.New("namespaceSelector is not supported for namespaced parent in v1 hook version")
	case r.NamespaceSelector != nil && !namespaced:
		return fmt.Errorf("namespaceSelector is not supported for the cluster-scoped resource %s in %s", r.Resource, r.APIVersion)
	case r.Namespace != "" && version != V2 && parentNamespace != "" && r.Namespace != parentNamespace:
		return fmt.Errorf("requested related object namespace %s differs from parent object namespace %s", r.Namespace, parentNamespace)
	}
	_, _, err := r.selectors()
	return err
}

func (r *Rule) selectors() (objects, namespaces labels.Selector, err error) {
	objects, namespaces = labels.Everything(), labels.Everything()
	if r.LabelSelector != nil {
		if objects, err = metav1.LabelSelectorAsSelector(r.LabelSelector); err != nil {
			return nil, nil, err
		}
	}
	if r.NamespaceSelector != nil {
		if namespaces, err = metav1.LabelSelectorAsSelector(r.NamespaceSelector); err != nil {
			return nil, nil, err
		}
	}
	return objects, namespaces, nil
}

// Matches reports whether a checked rule selects an object. namespaceLabels returns the
// labels of a namespace; it is only called for rules with a namespaceSelector.
func (r *Rule) Matches(version, parentNamespace string, object metav1.Object, namespaceLabels func(string) map[string]string) bool {
	if _, shown := Key(version, parentNamespace, object.GetNamespace(), object.GetName()); !shown {
		return false
	}
	if r.Namespace != "" && object.GetNamespace() != r.Namespace {
		return false
	}
	if len(r.Names) > 0 && !slices.Contains(r.Names, object.GetName()) {
		return false
	}
	objects, namespaces, err := r.selectors()
	if err != nil || !objects.Matches(labels.Set(object.GetLabels())) {
		return false
	}
	return r.NamespaceSelector == nil || namespaces.Matches(labels.Set(namespaceLabels(object.GetNamespace())))
}
