package gopftest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// operator is the user name of requests that impersonate no user.
const operator = "gopftest"

// access holds the rules of Allow and Deny. They apply to all users.
type access struct {
	mu            sync.Mutex
	allowed, shut []*accessRule
}

// accessRule matches requests. "*" and "" match everything.
type accessRule struct{ verb, resource, namespace string }

// Deny makes the cluster answer matching requests with 403 Forbidden, as the real API
// server does when a permission is missing.
//
// verb is an RBAC verb such as "list" or "patch". resource is the plural name,
// optionally with the API group or the subresource: "deployments",
// "deployments.apps" or "pods/status". namespace "-" matches requests for all
// namespaces and for cluster-scoped objects. "*" and "" match everything.
//
// The rule applies until lift is called.
func (c *Cluster) Deny(verb, resource, namespace string) (lift func()) {
	c.memoryOnly("Deny")
	return c.access.add(&c.access.shut, &accessRule{verb, resource, namespace})
}

// Allow denies every request that neither this nor another Allow matches. Use it to
// test an operator with few permissions. The arguments are those of [Cluster.Deny],
// and Deny takes precedence. The rule applies until lift is called.
//
// To test the RBAC manifests of an operator, let it act as its service account
// instead: see [Cluster.As].
func (c *Cluster) Allow(verb, resource, namespace string) (lift func()) {
	c.memoryOnly("Allow")
	return c.access.add(&c.access.allowed, &accessRule{verb, resource, namespace})
}

func (a *access) add(to *[]*accessRule, rule *accessRule) (lift func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	*to = append(*to, rule)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		*to = slices.DeleteFunc(slices.Clone(*to), func(r *accessRule) bool { return r == rule })
	}
}

// permits reports whether Allow and Deny let the request pass.
func (a *access) permits(rt route) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	matches := func(r *accessRule) bool { return r.matches(rt) }
	return !slices.ContainsFunc(a.shut, matches) && (len(a.allowed) == 0 || slices.ContainsFunc(a.allowed, matches))
}

func (r *accessRule) matches(rt route) bool {
	is := func(rule string, names ...string) bool {
		return rule == "" || rule == "*" || slices.Contains(names, rule)
	}
	plural, subresource, _ := strings.Cut(r.resource, "/")
	about := is(r.resource) ||
		is(plural, rt.resource, rt.resource+"."+rt.group) && is(cmp.Or(subresource, "-"), cmp.Or(rt.subresource, "-"))
	return about && is(r.verb, rt.verb) && is(r.namespace, cmp.Or(rt.namespace, "-"))
}

// authorize returns a Forbidden error if the request is not allowed.
func (x *exchange) authorize(rt route) error {
	rt = rt.asJudged(x.r)
	user, judged := userOf(x.r)
	if x.access.permits(rt) && (!judged || x.allows(user, rt)) {
		return nil
	}
	resource, where := rt.resource, "at the cluster scope"
	if rt.subresource != "" {
		resource += "/" + rt.subresource
	}
	if rt.namespace != "" {
		where = fmt.Sprintf("in the namespace %q", rt.namespace)
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: rt.group, Resource: rt.resource}, rt.name,
		fmt.Errorf("User %q cannot %s resource %q in API group %q %s", user.Username, rt.verb, resource, rt.group, where))
}

// asJudged returns the route as the authorizer sees it: a Namespace object is in the
// namespace of its own name, and a list selected by one name is about that object.
func (rt route) asJudged(r *http.Request) route {
	if rt.group == "" && rt.resource == "namespaces" {
		rt.namespace = rt.name
	}
	if selector, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector")); err == nil && rt.name == "" {
		rt.name, _ = selector.RequiresExactMatch("metadata.name")
	}
	return rt
}

// userOf returns the user of a request, and whether roles limit what that user may
// do. Members of system:masters may do everything.
func userOf(r *http.Request) (user authenticationv1.UserInfo, judged bool) {
	name := r.Header.Get("Impersonate-User")
	if name == "" {
		return authenticationv1.UserInfo{Username: operator, Groups: []string{"system:masters", "system:authenticated"}}, false
	}
	user = authenticationv1.UserInfo{Username: name, Groups: r.Header.Values("Impersonate-Group")}
	if account, ok := strings.CutPrefix(name, "system:serviceaccount:"); ok && len(user.Groups) == 0 {
		namespace, _, _ := strings.Cut(account, ":")
		user.Groups = []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace}
	}
	user.Groups = append(user.Groups, "system:authenticated")
	return user, !slices.Contains(user.Groups, "system:masters")
}

// allows reports whether the user may send the request: by the roles of the assumed
// account, or else by those in the cluster.
func (x *exchange) allows(user authenticationv1.UserInfo, rt route) bool {
	if a := x.assumed.Load(); a != nil && a.user == user.Username {
		return a.permits(x.r.Context(), user, rt)
	}
	return x.granted(user, rt)
}

// granted reports whether the roles and bindings in the cluster permit the request.
func (c *Cluster) granted(user authenticationv1.UserInfo, rt route) bool {
	for _, b := range objectsOf[rbacv1.ClusterRoleBinding](c, rbacv1.GroupName, "clusterrolebindings", "") {
		if bound(b.Subjects, "", user) && slices.ContainsFunc(c.rulesOf(b.RoleRef, ""), covers(rt)) {
			return true
		}
	}
	if rt.namespace == "" {
		return false
	}
	for _, b := range objectsOf[rbacv1.RoleBinding](c, rbacv1.GroupName, "rolebindings", rt.namespace) {
		if bound(b.Subjects, rt.namespace, user) && slices.ContainsFunc(c.rulesOf(b.RoleRef, rt.namespace), covers(rt)) {
			return true
		}
	}
	return false
}

func bound(subjects []rbacv1.Subject, namespace string, user authenticationv1.UserInfo) bool {
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		switch s.Kind {
		case rbacv1.UserKind:
			return s.Name == user.Username
		case rbacv1.GroupKind:
			return slices.Contains(user.Groups, s.Name)
		default:
			return user.Username == "system:serviceaccount:"+cmp.Or(s.Namespace, namespace)+":"+s.Name
		}
	})
}

func (c *Cluster) rulesOf(ref rbacv1.RoleRef, namespace string) []rbacv1.PolicyRule {
	if ref.Kind == "ClusterRole" {
		for _, role := range objectsOf[rbacv1.ClusterRole](c, rbacv1.GroupName, "clusterroles", "") {
			if role.Name == ref.Name {
				return role.Rules
			}
		}
		return nil
	}
	for _, role := range objectsOf[rbacv1.Role](c, rbacv1.GroupName, "roles", namespace) {
		if role.Name == ref.Name {
			return role.Rules
		}
	}
	return nil
}

func covers(rt route) func(rbacv1.PolicyRule) bool {
	has := func(list []string, names ...string) bool {
		return slices.ContainsFunc(append(names, "*"), func(name string) bool { return slices.Contains(list, name) })
	}
	return func(r rbacv1.PolicyRule) bool {
		resources := []string{rt.resource}
		if rt.subresource != "" {
			resources = []string{rt.resource + "/" + rt.subresource, "*/" + rt.subresource}
		}
		named := len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, rt.name)
		return has(r.Verbs, rt.verb) && has(r.APIGroups, rt.group) && has(r.Resources, resources...) && named
	}
}
