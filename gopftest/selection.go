package gopftest

import (
	"fmt"
	"net/url"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metainternalversionvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// listOptions parses the parameters of a list or watch.
func (s *scope) listOptions(query url.Values) (*internalversion.ListOptions, error) {
	options := &internalversion.ListOptions{}
	if err := metainternalversionscheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion, options); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	internalversion.SetListOptionsDefaults(options, true)
	if errs := metainternalversionvalidation.ValidateListOptions(options, true); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
	}
	return options, nil
}

// selection selects objects of a resource.
type selection struct {
	namespace string // empty: all namespaces
	labels    labels.Selector
	fields    fields.Selector
	paths     []string // allowed paths of the field selector
}

func (s *scope) selection(options *internalversion.ListOptions) (*selection, error) {
	sel := &selection{namespace: s.namespace, labels: labels.Everything(), fields: fields.Everything(), paths: s.version.fields}
	if options.LabelSelector != nil {
		sel.labels = options.LabelSelector
	}
	if options.FieldSelector != nil {
		sel.fields = options.FieldSelector
	}
	for _, req := range sel.fields.Requirements() {
		if req.Field != "metadata.name" && req.Field != "metadata.namespace" && !slices.Contains(sel.paths, req.Field) {
			return nil, apierrors.NewBadRequest(s.unknownField(req.Field))
		}
	}
	return sel, nil
}

// unknownField returns the real API server's error text. It depends on whether the kind
// has any selectable fields.
func (s *scope) unknownField(name string) string {
	if !s.resource.custom() && len(s.version.fields) == 0 {
		return fmt.Sprintf("%q is not a known field selector: only %q, %q", name, "metadata.name", "metadata.namespace")
	}
	return "field label not supported: " + name
}

// everything reports whether there are no selectors.
func (sel *selection) everything() bool { return sel.labels.Empty() && sel.fields.Empty() }

// has reports whether the object is selected. nil never is.
func (sel *selection) has(e *entry) bool {
	if e == nil || sel.namespace != "" && sel.namespace != e.key.namespace || !sel.labels.Matches(e.labels) {
		return false
	}
	if sel.fields.Empty() {
		return true
	}
	set := fields.Set{"metadata.name": e.key.name, "metadata.namespace": e.key.namespace}
	if slices.ContainsFunc(sel.fields.Requirements(), func(r fields.Requirement) bool { return slices.Contains(sel.paths, r.Field) }) {
		obj := e.object()
		for _, path := range sel.paths {
			set[path] = lookup(obj, path)
		}
	}
	return sel.fields.Matches(set)
}
