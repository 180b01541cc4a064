package admission

import (
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/rbac"
	"gopf.dev/gopf/kind"
)

// Needs returns the permissions for maintaining the webhook configurations of the
// handlers. managed is their name; "" means that they are not maintained. absent reports
// whether the configuration does not exist yet.
func Needs(handlers handler.Set, managed string, absent func(mutating bool) bool) (all []rbac.Need) {
	if managed == "" {
		return nil
	}
	for _, plural := range []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"} {
		mutating := plural == "mutatingwebhookconfigurations"
		need := rbac.Need{
			Info: kind.Info{Group: "admissionregistration.k8s.io", Version: "v1", Plural: plural}, Name: managed,
			Verbs: []string{"get", "list", "watch", "patch"}, Without: "the API server does not call the webhooks of this operator",
		}
		for _, h := range handlers.Of(handler.Reviews) {
			if h.Admission.Mutating == mutating {
				need.By = append(need.By, h.ID)
			}
		}
		if len(need.By) == 0 {
			continue
		}
		all = append(all, need)
		if absent(mutating) { // RBAC cannot limit create to a name
			need.Name, need.Verbs = "", []string{"create"}
			all = append(all, need)
		}
	}
	return all
}
