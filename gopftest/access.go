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

// operator is who makes requests that are made in nobody's name.
const operator = "gopftest"

// access is what Allow and Deny have said, for everybody.
type access struct {
	mu            sync.Mutex
	allowed, shut []*accessRule
}

// accessRule is about requests; "*" and "" are any.
type accessRule struct{ verb, resource, namespace string }

// Deny refuses requests as the real server does when there is no permission. The
// verb is one of those in roles, the resource a plural with the group after a
// dot or the subresource after a slash if need be, such as "deployments",
// "deployments.apps" or "pods/status"; requests for all namespaces have the
// namespace "-". "*" and "" are any. It holds until it is lifted.
func (c *Cluster) Deny(verb, resource, namespace string) (lift func()) {
	c.memoryOnly("Deny")
	return c.access.add(&c.access.shut, &accessRule{verb, resource, namespace})
}

// Allow refuses all requests but those that this or another Allow is about, as
// for an operator with few permissions; see [Cluster.Deny], which has the last
// word. It holds until it is lifted.
//
// Permissions as they are in manifests can be tested, too: requests in the name
// of a user, as of rest.Config's Impersonate, are judged by the roles and
// bindings in the cluster.
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

// permits says that the rules let a request pass.
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

// authorize refuses a request that is not allowed.
func (x *exchange) authorize(rt route) error {
	rt = rt.asJudged(x.r)
	user, judged := userOf(x.r)
	if x.access.permits(rt) && (!judged || x.granted(user, rt)) {
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

// asJudged is the request as permissions see it: a namespace is in itself, and a
// list of one name is about that one.
func (rt route) asJudged(r *http.Request) route {
	if rt.group == "" && rt.resource == "namespaces" {
		rt.namespace = rt.name
	}
	if selector, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector")); err == nil && rt.name == "" {
		rt.name, _ = selector.RequiresExactMatch("metadata.name")
	}
	return rt
}

// userOf tells in whose name a request is made, and whether that is somebody with
// limited permissions.
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

// granted judges by the roles in the cluster.
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
