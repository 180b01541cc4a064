package handler

import (
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metalabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Requirements are criteria for labels that the API server can check by itself.
type Requirements []metav1.LabelSelectorRequirement

// Indexed returns the label selector for a resource whose objects only feed
// indices: the requirements that all index functions share. No index has other objects.
// "" means that everything must be read, because there are other handlers, or
// because the functions require nothing in common.
func (s Set) Indexed() string {
	var common Requirements
	for i, h := range s {
		if h.Family != Indexing {
			return ""
		}
		if i == 0 {
			common = h.Labels
			continue
		}
		common = slices.DeleteFunc(slices.Clone(common), func(r metav1.LabelSelectorRequirement) bool {
			return !slices.ContainsFunc(h.Labels, func(other metav1.LabelSelectorRequirement) bool { return reflect.DeepEqual(r, other) })
		})
	}
	return common.selector()
}

// selector returns the requirements as a label selector of the API. It omits those that
// the API cannot express, such as a value that no label can have; the filters check them.
func (r Requirements) selector() string {
	selector := metalabels.NewSelector()
	for _, one := range r {
		if requirement, err := metalabels.NewRequirement(one.Key, operators[one.Operator], one.Values); err == nil {
			selector = selector.Add(*requirement)
		}
	}
	return selector.String()
}

var operators = map[metav1.LabelSelectorOperator]selection.Operator{
	metav1.LabelSelectorOpExists:       selection.Exists,
	metav1.LabelSelectorOpDoesNotExist: selection.DoesNotExist,
	metav1.LabelSelectorOpIn:           selection.Equals, // there is one value
}

// CheckSameSelect returns an error if two handlers of one resource have different label
// selectors, or if only one hands objects over: they share one watch. Review handlers need no watch.
func (h *Handler) CheckSameSelect(other *Handler) error {
	switch {
	case h.Family == Reviews || other.Family == Reviews:
		return nil
	case h.Select == other.Select && h.HandOver == other.HandOver:
		return nil
	case h.Select == other.Select:
		return fmt.Errorf("only one of the handlers %q (%s) and %q (%s) of %s is declared with HandOver; use it for all",
			h.ID, h.Where, other.ID, other.Where, h.Of)
	}
	return fmt.Errorf("handlers of %s select different objects: %q by %q (%s), %q by %q (%s); use one selection for all",
		h.Of, h.Select, h.ID, h.Where, other.Select, other.ID, other.Where)
}
