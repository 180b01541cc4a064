package metacontroller

import (
	"errors"
	"fmt"

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

	parsed *parsedRule // nil before parse
}

// Limits of the rules in a response. Each event of a related object is compared with the rules of
// all parents that may select it.
const (
	mostRules = 100
	// mostNames is the limit of the names in a rule.
	mostNames = 1000
	// mostParts is the limit of the requirements of a selector, and of their values together.
	mostParts = 100
	// allParts is the limit of the requirements and values of all rules together.
	allParts = 1000
)

// parsedRule is the form of a rule that is compared with objects.
type parsedRule struct {
	objects, namespaces labels.Selector
	names               map[string]bool
	parts               int   // of both selectors
	size                int   // the approximate memory of the rule in bytes
	err                 error // of a rule that selects nothing
}

// parse prepares a rule. A mistake is the error of the later [Rule.Check].
func (r *Rule) parse() {
	p := &parsedRule{objects: labels.Everything(), namespaces: labels.Everything()}
	r.parsed = p
	p.size = 256 + len(r.APIVersion) + len(r.Resource) + len(r.Namespace)
	for _, name := range r.Names {
		p.size += 64 + len(name)
	}
	for _, s := range []*metav1.LabelSelector{r.LabelSelector, r.NamespaceSelector} {
		p.size += selectorSize(s)
	}
	if len(r.Names) > mostNames {
		p.err = fmt.Errorf("a related rule of %s in %s has %d names, and the limit is %d", r.Resource, r.APIVersion, len(r.Names), mostNames)
		return
	}
	if len(r.Names) > 0 {
		p.names = make(map[string]bool, len(r.Names))
		for _, name := range r.Names {
			p.names[name] = true
		}
	}
	for _, one := range []struct {
		from *metav1.LabelSelector
		to   *labels.Selector
	}{{r.LabelSelector, &p.objects}, {r.NamespaceSelector, &p.namespaces}} {
		if one.from == nil {
			continue
		}
		n, err := parts(one.from)
		if err == nil {
			*one.to, err = metav1.LabelSelectorAsSelector(one.from)
		}
		if p.parts += n; err != nil {
			p.err = err
			return
		}
	}
}

// parts returns the number of requirements and values of a selector. Too many are an error.
func parts(s *metav1.LabelSelector) (int, error) {
	requirements, values := len(s.MatchLabels)+len(s.MatchExpressions), len(s.MatchLabels)
	for _, e := range s.MatchExpressions {
		values += len(e.Values)
	}
	return requirements + values, checkParts(requirements, values)
}

// selectorSize returns the approximate memory of a selector and its parsed form. s may be nil.
func selectorSize(s *metav1.LabelSelector) (bytes int) {
	if s == nil {
		return 0
	}
	for name, value := range s.MatchLabels {
		bytes += 256 + len(name) + len(value)
	}
	for _, e := range s.MatchExpressions {
		bytes += 256 + len(e.Key) + len(e.Operator)
		for _, value := range e.Values {
			bytes += 64 + len(value)
		}
	}
	return bytes
}

// checkParts returns an error for the selector of a parent or a rule that would slow down events.
func checkParts(requirements, values int) error {
	if requirements > mostParts || values > mostParts {
		return fmt.Errorf("a selector may have %d requirements and %d values, and this one has %d and %d", mostParts, mostParts, requirements, values)
	}
	return nil
}

// checkRules prepares the rules of a response, and refuses too many.
func checkRules(rules []*Rule) error {
	if len(rules) > mostRules {
		return fmt.Errorf("the response has %d relatedResources, and the limit is %d", len(rules), mostRules)
	}
	all := 0
	for _, r := range rules {
		r.parse()
		all += r.parsed.parts
	}
	if all > allParts {
		return fmt.Errorf("the selectors of the relatedResources have %d requirements and values, and the limit is %d", all, allParts)
	}
	return nil
}

// scope returns the only namespace whose objects a rule may select, or "".
func (r *Rule) scope(version, parentNamespace string) string {
	if version != V2 && parentNamespace != "" {
		return parentNamespace
	}
	return r.Namespace
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
	if r.parsed == nil {
		r.parse()
	}
	return r.parsed.err
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
	p := r.parsed
	if p == nil || p.err != nil || p.names != nil && !p.names[object.GetName()] || !p.objects.Matches(labels.Set(object.GetLabels())) {
		return false
	}
	return r.NamespaceSelector == nil || p.namespaces.Matches(labels.Set(namespaceLabels(object.GetNamespace())))
}
