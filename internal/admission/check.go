package admission

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"gopf.dev/gopf/internal/handler"
)

// operations are the operations of admission requests.
var operations = []string{"CREATE", "UPDATE", "DELETE", "CONNECT"}

// Check validates the declarations of review handlers. managed is the name of the
// managed webhook configurations; "" means none. The error has all problems.
func Check(handlers handler.Set, managed string) error {
	var problems []error
	if managed != "" && len(validation.IsDNS1123Subdomain(managed)) > 0 || managed != "" && strings.Count(managed, ".") < 1 {
		problems = append(problems, fmt.Errorf("the name of the managed configuration, %q, is not a domain name with a dot; choose a name like \"auto.kopf.dev\"", managed))
	}
	seen := map[string]*handler.Handler{}
	for _, h := range handlers.Of(handler.Reviews) {
		problems = append(problems, checkHandler(h)...)
		// Kubernetes requires unique names. A validating and a mutating webhook would
		// have the same URL, and validation must not change anything.
		name := Name(h.ID, "")
		if first := seen[name]; first != nil && managed != "" {
			problems = append(problems, fmt.Errorf("the ids %q (%s) and %q (%s) result in the same webhook: choose another id for one of them",
				first.ID, first.Where, h.ID, h.Where))
		}
		seen[name] = h
	}
	return errors.Join(problems...)
}

func checkHandler(h *handler.Handler) (problems []error) {
	a := h.Admission
	if faults := validation.IsDNS1123Subdomain(Name(h.ID, "")); len(faults) > 0 {
		problems = append(problems, fmt.Errorf("the id %q (%s) cannot be the name of a webhook: %s", h.ID, h.Where, strings.Join(faults, "; ")))
	}
	if a.Operations != nil && len(a.Operations) == 0 {
		problems = append(problems, fmt.Errorf("the handler %q (%s) has an empty list of operations: name some, or omit the option to get all", h.ID, h.Where))
	}
	for _, o := range a.Operations {
		if !slices.Contains(operations, o) {
			problems = append(problems, fmt.Errorf("the handler %q (%s) has the unknown operation %q; valid are %s",
				h.ID, h.Where, o, strings.Join(operations, ", ")))
		}
	}
	if c := h.Change; c != nil && (c.Old != nil || c.New != nil) {
		problems = append(problems, fmt.Errorf("the handler %q (%s) filters by the change of a field, but reviews are matched only by the proposed object: compare the values in the handler",
			h.ID, h.Where))
	}
	if a.Typed && !slices.Contains([]string{"", "status", anything}, a.Subresource) {
		problems = append(problems, fmt.Errorf("the handler %q (%s) has the subresource %q, whose objects are of another kind: declare it for untyped objects",
			h.ID, h.Where, a.Subresource))
	}
	return problems
}
