package admission

import (
	"cmp"
	"encoding/base64"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/webhook"
)

// Entry is one webhook in a configuration, as decoded JSON.
type Entry = map[string]any

// Plan has everything that the webhooks in a configuration depend on.
type Plan struct {
	Managed   string // the name of the configuration
	Handlers  handler.Set
	Resources []kind.Info // the resources of the cluster
	Server    webhook.ClientConfig
	Namespace string // the operator's own namespace; "" means unknown

	// Conditions are the match conditions of webhooks for updates; see
	// [Own.Conditions].
	Conditions []any
}

const (
	timeoutSeconds = 30 // the timeout of one review; the maximum in Kubernetes
	anything       = "*"
	kubeSystem     = "kube-system"
)

// Entries returns the mutating or the validating webhooks, in the order of declaration.
func (p Plan) Entries(mutating bool) []Entry {
	entries := []Entry{}
	for _, h := range p.Handlers.Of(handler.Reviews) {
		if h.Admission.Mutating == mutating {
			entries = append(entries, p.entry(h))
		}
	}
	return entries
}

// Persistent returns the plan for the time when the operator is not running.
func (p Plan) Persistent() Plan {
	p.Handlers = slices.Clone(p.Handlers)
	p.Handlers = slices.DeleteFunc(p.Handlers, func(h *handler.Handler) bool {
		return h.Admission == nil || !h.Admission.Persistent
	})
	return p
}

// entry returns the webhook of one handler.
func (p Plan) entry(h *handler.Handler) Entry {
	a := h.Admission
	resources := h.Of.Select(p.Resources)
	e := Entry{
		"name":                    Name(h.ID, p.Managed),
		"sideEffects":             choose(a.SideEffects, "NoneOnDryRun", "None"),
		"failurePolicy":           choose(a.IgnoreFailures, "Ignore", "Fail"),
		"matchPolicy":             "Equivalent",
		"rules":                   rules(a, resources),
		"objectSelector":          objectSelector(a.Labels),
		"clientConfig":            clientConfig(For(p.Server, h.ID)),
		"timeoutSeconds":          int64(timeoutSeconds),
		"admissionReviewVersions": []any{"v1", "v1beta1"},
	}
	if !a.EveryNamespace && slices.ContainsFunc(resources, vital) {
		e["namespaceSelector"] = p.outsideOfSystem()
	}
	if len(p.Conditions) > 0 && a.Updates() {
		e["matchConditions"] = p.Conditions
	}
	return e
}

// vital reports whether a resource is one that clusters, and the operator itself, consist
// of. Its webhooks must not apply to system namespaces: an operator that is not running
// would block its own start.
func vital(i kind.Info) bool { return i.Group == "" || i.Group == "apps" }

// outsideOfSystem returns a namespace selector that excludes kube-system and the
// operator's own namespace.
func (p Plan) outsideOfSystem() map[string]any {
	values := []any{kubeSystem}
	if p.Namespace != "" && p.Namespace != kubeSystem {
		values = append(values, p.Namespace)
	}
	return map[string]any{"matchExpressions": []any{
		map[string]any{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": values},
	}}
}

// rules returns the rules of a webhook. They are sorted, because the order of discovery
// must not cause a write.
func rules(a *handler.Admission, resources []kind.Info) []any {
	operations := []any{anything}
	if len(a.Operations) > 0 {
		operations = list(a.Operations)
	}
	resources = slices.SortedFunc(slices.Values(resources), func(a, b kind.Info) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Plural, b.Plural))
	})
	rules := []any{}
	for _, i := range resources {
		rules = append(rules, map[string]any{
			"apiGroups":   []any{i.Group},
			"apiVersions": []any{i.Version},
			"resources":   endpoints(i.Plural, a.Subresource),
			"operations":  operations,
			"scope":       anything,
		})
	}
	return rules
}

// endpoints returns the resources of a rule. In Kubernetes, an asterisk for subresources
// does not include the object itself.
func endpoints(plural, subresource string) []any {
	switch subresource {
	case "":
		return []any{plural}
	case anything:
		return []any{plural, plural + "/" + anything}
	}
	return []any{plural + "/" + subresource}
}

// objectSelector returns the selector for the labels. nil means all objects.
func objectSelector(labels []metav1.LabelSelectorRequirement) any {
	if len(labels) == 0 {
		return nil
	}
	var expressions []any
	for _, l := range labels {
		e := map[string]any{"key": l.Key, "operator": string(l.Operator)}
		if len(l.Values) > 0 {
			e["values"] = list(l.Values)
		}
		expressions = append(expressions, e)
	}
	return map[string]any{"matchExpressions": expressions}
}

func clientConfig(c webhook.ClientConfig) map[string]any {
	fields := map[string]any{}
	if c.URL != "" {
		fields["url"] = c.URL
	}
	if s := c.Service; s != nil {
		fields["service"] = map[string]any{
			"namespace": s.Namespace, "name": s.Name, "path": s.Path, "port": int64(cmp.Or(s.Port, 443)),
		}
	}
	if len(c.CABundle) > 0 {
		fields["caBundle"] = base64.StdEncoding.EncodeToString(c.CABundle)
	}
	return fields
}

// defaulted returns a copy of the entry as the API server completes it: with default
// values, and without an empty list of rules. A handler has no rules while the cluster
// does not have its resource. Both sides of a comparison must be completed, because some
// servers set only some defaults, such as test servers in memory.
func defaulted(e Entry, mutating bool) Entry {
	e = maps.Clone(e)
	if rules, _ := e["rules"].([]any); len(rules) == 0 {
		delete(e, "rules")
	}
	for _, selector := range []string{"namespaceSelector", "objectSelector"} {
		if e[selector] == nil {
			e[selector] = map[string]any{}
		}
	}
	if mutating && e["reinvocationPolicy"] == nil {
		e["reinvocationPolicy"] = "Never"
	}
	return e
}

func list(values []string) []any {
	var all []any
	for _, v := range values {
		all = append(all, v)
	}
	return all
}

func choose(condition bool, yes, no string) string {
	if condition {
		return yes
	}
	return no
}
