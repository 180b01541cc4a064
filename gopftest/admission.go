package gopftest

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// review is a write that admission webhooks must approve.
type review struct {
	operation admissionv1.Operation
	object    *unstructured.Unstructured // nil means a deletion
	old       *unstructured.Unstructured // nil means a creation
}

// hook is a webhook to call for a write.
type hook struct {
	name    string
	client  admissionregistrationv1.WebhookClientConfig
	ignore  bool // errors of the webhook do not block the write
	timeout int32
	version string // API version of the objects to send

	conditions []admissionregistrationv1.MatchCondition
}

// mutators returns the mutating webhooks that match the write.
func (s *scope) mutators(r review) []hook {
	var hooks []hook
	for _, c := range objectsOfLocked[admissionregistrationv1.MutatingWebhookConfiguration](s.cluster, admissionregistrationv1.GroupName, "mutatingwebhookconfigurations", "") {
		for _, w := range c.Webhooks {
			version, ok := s.concerns(r, w.Rules, w.MatchPolicy, w.NamespaceSelector, w.ObjectSelector)
			if ok {
				hooks = append(hooks, newHook(w.Name, w.ClientConfig, w.FailurePolicy, w.TimeoutSeconds, version, w.MatchConditions))
			}
		}
	}
	return hooks
}

// validators returns the validating webhooks that match the write.
func (s *scope) validators(r review) []hook {
	var hooks []hook
	for _, c := range objectsOfLocked[admissionregistrationv1.ValidatingWebhookConfiguration](s.cluster, admissionregistrationv1.GroupName, "validatingwebhookconfigurations", "") {
		for _, w := range c.Webhooks {
			version, ok := s.concerns(r, w.Rules, w.MatchPolicy, w.NamespaceSelector, w.ObjectSelector)
			if ok {
				hooks = append(hooks, newHook(w.Name, w.ClientConfig, w.FailurePolicy, w.TimeoutSeconds, version, w.MatchConditions))
			}
		}
	}
	return hooks
}

func newHook(name string, client admissionregistrationv1.WebhookClientConfig, failure *admissionregistrationv1.FailurePolicyType, timeout *int32, version string,
	conditions []admissionregistrationv1.MatchCondition,
) hook {
	h := hook{name: name, client: client, timeout: 10, version: version, conditions: conditions}
	h.ignore = failure != nil && *failure == admissionregistrationv1.Ignore
	if timeout != nil {
		h.timeout = *timeout
	}
	return h
}

// concerns reports whether a webhook must be called, and with which API version.
func (s *scope) concerns(r review, rules []admissionregistrationv1.RuleWithOperations, policy *admissionregistrationv1.MatchPolicyType,
	namespaces, objects *metav1.LabelSelector,
) (version string, ok bool) {
	if s.resource.Group == admissionregistrationv1.GroupName || s.unasked {
		return "", false // webhooks could block the repair of their own configuration
	}
	if version, ok = s.ruled(r.operation, rules, policy); !ok {
		return "", false
	}
	return version, s.inChosenNamespace(r, namespaces) && chosenObject(r, objects)
}

// ruled returns the API version under which the rules match the write: that of the
// request or, if the match policy is Equivalent, another version of the resource.
func (s *scope) ruled(operation admissionv1.Operation, rules []admissionregistrationv1.RuleWithOperations, policy *admissionregistrationv1.MatchPolicyType) (string, bool) {
	versions := []string{s.version.name}
	if policy == nil || *policy == admissionregistrationv1.Equivalent {
		for _, v := range s.resource.versions {
			versions = append(versions, v.name)
		}
	}
	for _, version := range versions {
		for _, rule := range rules {
			if s.matches(rule, operation, version) {
				return version, true
			}
		}
	}
	return "", false
}

func (s *scope) matches(rule admissionregistrationv1.RuleWithOperations, operation admissionv1.Operation, version string) bool {
	has := func(list []string, values ...string) bool {
		return slices.ContainsFunc(values, func(v string) bool { return slices.Contains(list, v) })
	}
	resources := []string{s.resource.Plural, "*", "*/*", s.resource.Plural + "/*"}
	if s.subresource != "" {
		resources = []string{s.resource.Plural + "/" + s.subresource, "*/" + s.subresource, "*/*", s.resource.Plural + "/*"}
	}
	scoped := rule.Scope == nil || *rule.Scope == admissionregistrationv1.AllScopes ||
		(*rule.Scope == admissionregistrationv1.NamespacedScope) == s.resource.Namespaced
	operations := make([]string, len(rule.Operations))
	for i, o := range rule.Operations {
		operations[i] = string(o)
	}
	return scoped && has(operations, string(operation), "*") && has(rule.APIGroups, s.resource.Group, "*") &&
		has(rule.APIVersions, version, "*") && has(rule.Resources, resources...)
}

// inChosenNamespace matches the labels of the object's namespace. For a Namespace,
// these are its own labels. The store must be locked.
func (s *scope) inChosenNamespace(r review, selector *metav1.LabelSelector) bool {
	chosen, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil || selector == nil || chosen.Empty() {
		return selector == nil || err == nil
	}
	if s.isNamespace() {
		if r.object != nil {
			return chosen.Matches(labels.Set(r.object.GetLabels()))
		}
		return r.old != nil && chosen.Matches(labels.Set(r.old.GetLabels()))
	}
	if !s.resource.Namespaced {
		return true
	}
	ns, ok := s.store().table(namespaceResource()).objects[objectKey{name: s.namespace}]
	return ok && chosen.Matches(ns.labels)
}

// chosenObject matches the labels of the object before or after the write.
func chosenObject(r review, selector *metav1.LabelSelector) bool {
	chosen, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil || selector == nil || chosen.Empty() {
		return selector == nil || err == nil
	}
	return slices.ContainsFunc([]*unstructured.Unstructured{r.object, r.old}, func(u *unstructured.Unstructured) bool {
		return u != nil && chosen.Matches(labels.Set(u.GetLabels()))
	})
}

// question returns the AdmissionReview to send to the webhook.
func (s *scope) question(r review, h hook) *admissionv1.AdmissionReview {
	kind := func(version string) metav1.GroupVersionKind {
		return metav1.GroupVersionKind{Group: s.resource.Group, Version: version, Kind: s.resource.Kind.Kind}
	}
	resource := func(version string) metav1.GroupVersionResource {
		return metav1.GroupVersionResource{Group: s.resource.Group, Version: version, Resource: s.resource.Plural}
	}
	in := func(u *unstructured.Unstructured) runtime.RawExtension {
		if u == nil {
			return runtime.RawExtension{}
		}
		u = u.DeepCopy()
		u.SetAPIVersion(Kind{Group: s.resource.Group, Version: h.version}.apiVersion())
		return runtime.RawExtension{Raw: encode(u.Object)}
	}
	wanted, asked := kind(h.version), kind(s.version.name)
	found, askedResource := resource(h.version), resource(s.version.name)
	dryRun := s.dryRun
	req := &admissionv1.AdmissionRequest{
		UID: uuid.NewUUID(), Kind: wanted, Resource: found, SubResource: s.subresource,
		RequestKind: &asked, RequestResource: &askedResource, RequestSubResource: s.subresource,
		Name: s.name, Namespace: s.namespace, Operation: r.operation, UserInfo: s.writer(),
		Object: in(r.object), OldObject: in(r.old), DryRun: &dryRun, Options: s.writeOptions(r.operation),
	}
	if r.object != nil && r.object.GetName() != "" {
		req.Name = r.object.GetName()
	}
	if s.isNamespace() {
		req.Namespace = req.Name
	}
	return &admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"}, Request: req}
}

// writeOptions returns the options of the request that webhooks can see. A patch is
// presented as a creation or an update.
func (s *scope) writeOptions(operation admissionv1.Operation) runtime.RawExtension {
	verb := string(operation)
	kind := verb[:1] + strings.ToLower(verb[1:]) + "Options"
	options := map[string]any{"apiVersion": metav1.SchemeGroupVersion.String(), "kind": kind}
	if s.dryRun {
		options["dryRun"] = []string{metav1.DryRunAll}
	}
	if s.manager != "" && s.managed {
		options["fieldManager"] = s.manager
	}
	return runtime.RawExtension{Raw: encode(options)}
}

// mutate calls the mutating webhooks and returns the object with their patches
// applied. The store must be locked; the lock is released during the calls.
func (s *scope) mutate(r review, hooks []hook) (*unstructured.Unstructured, error) {
	var err error
	s.unlocked(func() {
		for _, h := range hooks {
			var answer *admissionv1.AdmissionResponse
			if answer, err = s.askIfMatched(h, r); err != nil || answer == nil || len(answer.Patch) == 0 {
				if err != nil {
					return
				}
				continue
			}
			if r.object, err = patched(r.object, answer.Patch); err != nil {
				err = fmt.Errorf("admission webhook %q: %w", h.name, err)
				return
			}
		}
	})
	return r.object, err
}

// validateBy calls the validating webhooks and returns the first denial. The store
// must be locked; the lock is released during the calls.
func (s *scope) validateBy(r review, hooks []hook) (err error) {
	s.unlocked(func() {
		for _, h := range hooks {
			if _, err = s.askIfMatched(h, r); err != nil {
				return
			}
		}
	})
	return err
}

// unlocked releases the lock of the store while do runs, because webhooks may use the API.
func (s *scope) unlocked(do func()) {
	s.store().mu.Unlock()
	defer s.store().mu.Lock()
	do()
}
