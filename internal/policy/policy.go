// Package policy generates manifests that protect the state of an operator on objects: a
// ValidatingAdmissionPolicy and its binding. The API server enforces them since Kubernetes
// 1.30. The package is pure.
package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Verb is the RBAC verb that an account needs on a resource to change the reserved
// fields of its objects. Grant it to people and tools that repair or migrate the state
// of an operator.
const Verb = "operate"

// Reservation reserves annotations and keys of the status for an operator.
type Reservation struct {
	// Name is the name of the policy and of its binding.
	Name string
	// Prefixes are the domains of the reserved annotations, such as
	// "databases.example.com".
	Prefixes []string
	// Keys are the reserved keys of the status, such as "databases". An operator reads them
	// even if it stores its state in annotations: earlier versions may have left some there.
	Keys []string
	// Account is the user name of the operator, such as
	// "system:serviceaccount:databases:operator".
	Account string
	// Resources are the resources whose objects have the fields.
	Resources []Resource
}

// Resource is a resource of the API, in all of its versions.
type Resource struct {
	Group  string // empty means the core group
	Plural string
}

// ParseResource parses PLURAL.GROUP. Without a group, the resource is in the core group.
func ParseResource(text string) (Resource, error) {
	plural, group, _ := strings.Cut(text, ".")
	if plural == "" || strings.ContainsAny(text, "/* ") {
		return Resource{}, fmt.Errorf("%q is not a resource; use PLURAL.GROUP, or PLURAL for the core group", text)
	}
	return Resource{Group: group, Plural: plural}, nil
}

// pauseKeys are the names of annotations that pause an object. Every editor of the object
// may set them, but not to JSON objects: those are records of a handler with such a name.
var pauseKeys = []string{"pause"}

// Objects returns the policy and its binding, as decoded JSON.
//
// A request that adds, changes or removes an annotation with a prefix, or a key of the
// status, is denied with 403.
// It is allowed for the operator's account, for controllers of Kubernetes itself, which may
// copy annotations between objects, and for accounts with the verb [Verb] on the resource.
// An object with more than 1,000 annotations is denied like that as well, unless they stay the same.
// The annotations that pause an object are not reserved. If Deployments are among the resources,
// requests of rollbacks by annotation are denied, because a rollback replaces all annotations.
func (r Reservation) Objects() ([]map[string]any, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	head := func(kind string, spec map[string]any) map[string]any {
		return map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
			"metadata": map[string]any{"name": r.Name}, "spec": spec,
		}
	}
	return []map[string]any{
		head("ValidatingAdmissionPolicy", map[string]any{
			"failurePolicy":    "Fail",
			"matchConstraints": map[string]any{"resourceRules": r.rules()},
			"matchConditions": []any{
				map[string]any{"name": "not-the-operator", "expression": "request.userInfo.username != " + quote(r.Account)},
				map[string]any{"name": "not-a-controller-of-kubernetes", "expression": "request.userInfo.username != 'system:kube-controller-manager' && " +
					"!request.userInfo.username.startsWith('system:serviceaccount:kube-system:')"},
			},
			"variables": []any{
				map[string]any{"name": "now", "expression": "has(object.metadata) && has(object.metadata.annotations) ? object.metadata.annotations : {}"},
				map[string]any{"name": "before", "expression": "oldObject != null && has(oldObject.metadata) && has(oldObject.metadata.annotations) ? oldObject.metadata.annotations : {}"},
				map[string]any{"name": "statusNow", "expression": "has(object.status) && type(object.status) == map ? object.status : {}"},
				map[string]any{"name": "statusBefore", "expression": "oldObject != null && has(oldObject.status) && type(oldObject.status) == map ? oldObject.status : {}"},
			},
			"validations": r.validations(),
		}),
		head("ValidatingAdmissionPolicyBinding", map[string]any{"policyName": r.Name, "validationActions": []any{"Deny"}}),
	}, nil
}

// YAML returns the policy and its binding as one text.
func (r Reservation) YAML() ([]byte, error) {
	objects, err := r.Objects()
	if err != nil {
		return nil, err
	}
	var documents []string
	for _, o := range objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			return nil, fmt.Errorf("encode the policy: %w", err)
		}
		documents = append(documents, string(text))
	}
	return []byte(strings.Join(documents, "---\n")), nil
}

func (r Reservation) check() error {
	switch {
	case r.Name == "":
		return errors.New("the policy has no name")
	case r.Account == "":
		return errors.New("the account of the operator is missing; the policy would deny its writes")
	case len(r.Resources) == 0:
		return errors.New("there are no resources to protect")
	case len(r.Prefixes)+len(r.Keys) == 0:
		return errors.New("the operator stores nothing on objects, so there is nothing to reserve")
	case slices.Contains(r.Keys, ""):
		return errors.New("a key of the status is empty")
	case slices.Contains(r.Prefixes, ""):
		return errors.New("a prefix is empty; it would reserve all annotations without a domain")
	}
	return nil
}

// rules match the creation and updates of the resources. They include subresources, because
// some of them can change annotations.
func (r Reservation) rules() []any {
	var rules []any
	for _, one := range r.Resources {
		matched := []any{one.Plural, one.Plural + "/*"}
		if one == pods {
			matched = append(matched, bindings)
		}
		rules = append(rules, map[string]any{
			"apiGroups": []any{one.Group}, "apiVersions": []any{"*"}, "operations": []any{"CREATE", "UPDATE"},
			"resources": matched,
		})
	}
	return rules
}

var (
	pods        = Resource{Plural: "pods"}
	deployments = Resource{Group: "apps", Plural: "deployments"}
)

const (
	// bindings is a core resource, and no subresource. The API server copies the annotations
	// of a binding to the Pod with its name, without a request for the Pod.
	bindings = "bindings"

	// rollback is the annotation that makes the controller of Deployments copy the annotations
	// of an earlier ReplicaSet to the Deployment. That controller is exempt from the policy.
	rollback = "deprecated.deployment.rollback.to"
)

// validations returns the conditions of requests, with the messages of their denials.
func (r Reservation) validations() []any {
	rule := func(conditions []string, message string) map[string]any {
		return map[string]any{"expression": strings.Join(conditions, " && ") + " || " + r.operates(), "message": message, "reason": "Forbidden"}
	}
	rules := []any{rule(slices.Concat(r.unchanged(), r.unchangedStatus(), r.unrolled()), r.message())}
	if len(r.Prefixes) > 0 {
		message := fmt.Sprintf("an object with more than %d annotations: changing any of them needs the verb %q on %s", maxAnnotations, Verb, r.names())
		rules = append(rules, rule([]string{"(" + sameAnnotations + " || " + few() + ")"}, message))
	}
	return rules
}

// maxAnnotations is the most annotations of an object whose annotations are changed. API servers
// evaluate an expression about all keys of a map in quadratic time: it takes 13 ms for 1,000 keys, and
// 30 s for the 80,000 that an object can have.
const maxAnnotations = 1_000

// sameAnnotations compares the annotations as a whole, in linear time.
const sameAnnotations = "variables.now == variables.before"

// few returns an expression: there are not too many annotations to look at each.
func few() string {
	return fmt.Sprintf("variables.now.size() <= %[1]d && variables.before.size() <= %[1]d", maxAnnotations)
}

// unchanged returns an expression: no reserved annotation is added, changed or removed. It is true
// as well if there are not few.
func (r Reservation) unchanged() []string {
	if len(r.Prefixes) == 0 {
		return nil
	}
	return []string{"(" + sameAnnotations + " || !(" + few() + ")" +
		fmt.Sprintf(" || variables.now.all(k, !%s || k in variables.before && variables.before[k] == variables.now[k])", r.reserved("k", "variables.now")) +
		fmt.Sprintf(" && variables.before.all(k, !%s || k in variables.now && variables.before[k] == variables.now[k]))", r.reserved("k", "variables.before"))}
}

// unchangedStatus returns an expression: no reserved key of the status is added, changed or
// removed.
func (r Reservation) unchangedStatus() []string {
	if len(r.Keys) == 0 {
		return nil
	}
	var keys []string
	for _, key := range r.Keys {
		keys = append(keys, quote(key))
	}
	return []string{"[" + strings.Join(keys, ", ") + "].all(k, k in variables.statusNow" +
		" ? k in variables.statusBefore && variables.statusBefore[k] == variables.statusNow[k] : !(k in variables.statusBefore))"}
}

// unrolled returns an expression: no annotation that requests a rollback of a Deployment is
// added or changed.
func (r Reservation) unrolled() []string {
	if len(r.Prefixes) == 0 || !slices.Contains(r.Resources, deployments) {
		return nil
	}
	const at = "'" + rollback + "'"
	return []string{"(request.resource.group != 'apps' || request.resource.resource != 'deployments' || !(" + at + " in variables.now) || " +
		at + " in variables.before && variables.before[" + at + "] == variables.now[" + at + "])"}
}

// reserved returns an expression: the annotation in the variable is reserved. in is the
// expression of all annotations.
func (r Reservation) reserved(variable, in string) string {
	var begins, pauses []string
	for _, prefix := range r.Prefixes {
		begins = append(begins, variable+".startsWith("+quote(prefix+"/")+")")
		for _, key := range pauseKeys {
			pauses = append(pauses, quote(prefix+"/"+key))
		}
	}
	return fmt.Sprintf("((%s) && (!(%s in [%s]) || %s[%s].trim().startsWith('{')))", strings.Join(begins, " || "), variable, strings.Join(pauses, ", "), in, variable)
}

// operates returns an expression: the account of the request has the verb on the object. The
// subresource is ignored, and some requests have no names. A binding counts as its Pod.
func (r Reservation) operates() string {
	resource := "request.resource.resource"
	if slices.Contains(r.Resources, pods) {
		resource = "request.resource.group == '' && " + resource + " == '" + bindings + "' ? '" + pods.Plural + "' : " + resource
	}
	return "authorizer.group(request.resource.group).resource(" + resource + ")" +
		".namespace(has(request.namespace) ? request.namespace : '').name(has(request.name) ? request.name : '').check('" + Verb + "').allowed()"
}

func (r Reservation) message() string {
	var fields []string
	if len(r.Prefixes) > 0 {
		fields = append(fields, "annotations of "+strings.Join(r.Prefixes, "/, ")+"/")
	}
	for _, key := range r.Keys {
		fields = append(fields, "status."+key)
	}
	return fmt.Sprintf("%s belong to the operator: changing them needs the verb %q on %s", strings.Join(fields, " and "), Verb, r.names())
}

// names returns the names of the resources.
func (r Reservation) names() string {
	var names []string
	for _, one := range r.Resources {
		names = append(names, strings.TrimSuffix(one.Plural+"."+one.Group, "."))
	}
	return strings.Join(names, ", ")
}

// quote returns a CEL string literal.
func quote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`).Replace(s) + "'"
}
