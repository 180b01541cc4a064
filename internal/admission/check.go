package admission

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"gopf.dev/gopf/internal/registry"
)

// operations are those that Kubernetes has reviews of.
var operations = []string{"CREATE", "UPDATE", "DELETE", "CONNECT"}

// Check tells what is wrong with the declarations of handlers of reviews. The
// name of the managed configuration is "" if there is none.
func Check(handlers registry.Set, managed string) error {
	var problems []error
	if managed != "" && len(validation.IsDNS1123Subdomain(managed)) > 0 || managed != "" && strings.Count(managed, ".") < 1 {
		problems = append(problems, fmt.Errorf("the name of the managed configuration, %q, is no domain name with a dot; choose one like \"auto.kopf.dev\"", managed))
	}
	seen := map[string]*registry.Handler{}
	for _, h := range handlers.Of(registry.Reviews) {
		problems = append(problems, checkHandler(h)...)
		// Kubernetes takes each name once. One that validates and one that mutates
		// would be called at the same URL, and validation must not change anything.
		name := Name(h.ID, "")
		if first := seen[name]; first != nil && managed != "" {
			problems = append(problems, fmt.Errorf("the ids %q (%s) and %q (%s) have the same webhook: choose another for one of them",
				first.ID, first.Where, h.ID, h.Where))
		}
		seen[name] = h
	}
	return errors.Join(problems...)
}

func checkHandler(h *registry.Handler) (problems []error) {
	a := h.Admission
	if faults := validation.IsDNS1123Subdomain(Name(h.ID, "")); len(faults) > 0 {
		problems = append(problems, fmt.Errorf("the id %q (%s) cannot be the name of a webhook: %s", h.ID, h.Where, strings.Join(faults, "; ")))
	}
	if a.Operations != nil && len(a.Operations) == 0 {
		problems = append(problems, fmt.Errorf("the handler %q (%s) is for no operation: name some, or leave the option out for all", h.ID, h.Where))
	}
	for _, o := range a.Operations {
		if !slices.Contains(operations, o) {
			problems = append(problems, fmt.Errorf("the handler %q (%s) is for the unknown operation %q: there are %s",
				h.ID, h.Where, o, strings.Join(operations, ", ")))
		}
	}
	if c := h.Change; c != nil && (c.Old != nil || c.New != nil) {
		problems = append(problems, fmt.Errorf("the handler %q (%s) is for changes of a field, but reviews are matched by what is wanted: compare the values in the handler",
			h.ID, h.Where))
	}
	if a.Typed && !slices.Contains([]string{"", "status", anything}, a.Subresource) {
		problems = append(problems, fmt.Errorf("the handler %q (%s) is for the subresource %q, whose objects are of another kind: declare it for untyped objects",
			h.ID, h.Where, a.Subresource))
	}
	return problems
}
