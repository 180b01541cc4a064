package gopftest

import (
	"fmt"
	"testing"
)

const (
	roles               = "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles"
	roleBindings        = "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/rolebindings"
	clusterRoles        = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
	clusterRoleBindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
	asUser              = "Impersonate-User: {ns}-user"
)

// grant creates a role with the rules and binds it to a user. kind is Role or
// ClusterRole, and also determines the binding.
func (s *script) grant(role, binding, rules, subject string) {
	s.t.Helper()
	rolePath, bindingPath := roles, roleBindings
	if role == "ClusterRole" {
		rolePath = clusterRoles
	}
	if binding == "ClusterRoleBinding" {
		bindingPath = clusterRoleBindings
	}
	if subject == "" {
		subject = `{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"{ns}-user"}`
	}
	for path, body := range map[string]string{
		rolePath: `{"metadata":{"name":"{ns}"},"rules":[` + rules + `]}`,
		bindingPath: `{"metadata":{"name":"{ns}"},"subjects":[` + subject + `],
			"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"` + role + `","name":"{ns}"}}`,
	} {
		if r := s.send("POST", path, body); r.code != 201 {
			s.t.Fatalf("grant: %v", r)
		}
		s.t.Cleanup(func() { _, _ = s.try("DELETE", path+"/{ns}", "") })
	}
}

// takes repeats a request until the API server, which learns of roles in the background,
// responds with the code.
func (s *script) takes(code int, method, path string, headers ...string) {
	s.t.Helper()
	for range 600 {
		if r, err := s.try(method, path, "", headers...); err == nil && r.code == code {
			return
		}
		pause()
	}
	s.t.Fatalf("%s %s: no response with %d", method, path, code)
}

func rule(groups, resources, verbs string) string {
	return fmt.Sprintf(`{"apiGroups":[%s],"resources":[%s],"verbs":[%s]}`, groups, resources, verbs)
}

func authorizing() []behaviour {
	const (
		group = `"conformance.gopf.dev"`
		all   = "/apis/conformance.gopf.dev/v1/widgets"
	)
	return []behaviour{
		{"nothing is allowed without a role", func(t *testing.T, s *script) {
			s.send("POST", widgets, widget("a", "", ""))
			s.call("GET", widgets+"/a", "", asUser)
			s.call("GET", widgets, "", asUser)
			s.call("GET", all, "", asUser)
			s.call("GET", widgets+"?watch=true", "", asUser)
			s.call("POST", widgets, widget("b", "", ""), asUser)
			s.call("PUT", widgets+"/a", widget("a", "", ""), asUser)
			s.call("PATCH", widgets+"/a", `{}`, asUser)
			s.call("PATCH", widgets+"/a/status", `{}`, asUser)
			s.call("DELETE", widgets+"/a", "", asUser)
			s.call("DELETE", widgets, "", asUser)
			s.note(s.send("GET", widgets+"/a", "").code)
		}},
		{"refusals come before everything else", func(t *testing.T, s *script) {
			s.call("GET", widgets+"/missing", "", asUser)
			s.call("POST", widgets, `{`, asUser)
			s.call("GET", "/apis/missing.gopf.dev/v1/things", "", asUser)
			s.call("GET", "/api/v1/namespaces/{ns}", "", asUser)
			s.call("GET", gadgets+"/a", "", asUser)
			s.call("GET", widgets+"?fieldSelector=metadata.name%3Da", "", asUser)
		}},
		{"a role allows verbs in its namespace", func(t *testing.T, s *script) {
			s.grant("Role", "RoleBinding", rule(group, `"widgets"`, `"get","list"`), "")
			s.takes(200, "GET", widgets, asUser)
			s.send("POST", widgets, widget("a", "", ""))
			s.note(s.send("GET", widgets+"/a", "", asUser).code)
			s.note(s.send("GET", widgets+"?watch=true", "", asUser).code)
			s.note(s.send("PATCH", widgets+"/a", `{}`, asUser).code)
			s.note(s.send("GET", all, "", asUser).code)
			s.note(s.send("GET", "/apis/conformance.gopf.dev/v1/namespaces/default/widgets", "", asUser).code)
			s.note(s.send("GET", orders, "", asUser).code)
		}},
		{"a role may be about names", func(t *testing.T, s *script) {
			s.grant("Role", "RoleBinding", `{"apiGroups":[`+group+`],"resources":["widgets"],"resourceNames":["a"],"verbs":["get","patch","list","create"]}`, "")
			s.send("POST", widgets, widget("a", "", ""))
			s.takes(200, "GET", widgets+"/a", asUser)
			s.note(s.send("GET", widgets+"/b", "", asUser).code)
			s.note(s.send("PATCH", widgets+"/a", `{"spec":{"a":1}}`, asUser).code)
			s.note(s.send("GET", widgets, "", asUser).code)
			s.note(s.send("GET", widgets+"?fieldSelector=metadata.name%3Da", "", asUser).code)
			s.note(s.send("POST", widgets, widget("a", "", ""), asUser).code)
		}},
		{"subresources need rules of their own", func(t *testing.T, s *script) {
			s.grant("Role", "RoleBinding", rule(group, `"widgets","fleets/*"`, `"get","patch"`), "")
			s.send("POST", widgets, widget("a", "", ""))
			s.send("POST", fleets, fleet("a", "", `"spec":{"replicas":1}`))
			s.takes(200, "GET", widgets+"/a", asUser)
			s.call("PATCH", widgets+"/a/status", `{"status":{}}`, asUser)
			s.note(s.send("GET", fleets+"/a", "", asUser).code)
			s.note(s.send("GET", fleets+"/a/scale", "", asUser).code, s.send("GET", fleets+"/a/status", "", asUser).code)
		}},
		{"a subresource of everything", func(t *testing.T, s *script) {
			s.grant("Role", "RoleBinding", rule(group, `"*/status"`, `"get"`), "")
			s.send("POST", widgets, widget("a", "", ""))
			s.takes(200, "GET", widgets+"/a/status", asUser)
			s.note(s.send("GET", widgets+"/a", "", asUser).code)
		}},
		{"a cluster role may be bound in a namespace", func(t *testing.T, s *script) {
			s.grant("ClusterRole", "RoleBinding", rule(group, `"widgets","gadgets"`, `"list"`), "")
			s.takes(200, "GET", widgets, asUser)
			s.note(s.send("GET", all, "", asUser).code, s.send("GET", gadgets, "", asUser).code)
		}},
		{"a cluster role may be bound everywhere", func(t *testing.T, s *script) {
			s.grant("ClusterRole", "ClusterRoleBinding", rule(group, `"widgets","gadgets"`, `"list"`), "")
			s.takes(200, "GET", all, asUser)
			s.note(s.send("GET", widgets, "", asUser).code, s.send("GET", gadgets, "", asUser).code, s.send("GET", orders, "", asUser).code)
		}},
		{"wildcards", func(t *testing.T, s *script) {
			s.grant("Role", "RoleBinding", rule(`"*"`, `"*"`, `"*"`), "")
			s.takes(200, "GET", widgets, asUser)
			s.note(s.send("POST", widgets, widget("a", "", ""), asUser).code, s.send("PATCH", widgets+"/a/status", `{"status":{}}`, asUser).code)
			s.note(s.send("GET", "/api/v1/namespaces/{ns}/configmaps", "", asUser).code, s.send("GET", gadgets, "", asUser).code)
		}},
		{"groups may be allowed", func(t *testing.T, s *script) {
			s.grant("Role", "RoleBinding", rule(group, `"widgets"`, `"list"`), `{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"{ns}-group"}`)
			s.takes(200, "GET", widgets, asUser, "Impersonate-Group: {ns}-group")
			s.note(s.send("GET", widgets, "", asUser).code, s.send("GET", widgets, "", asUser, "Impersonate-Group: other").code)
		}},
		{"service accounts may be allowed", func(t *testing.T, s *script) {
			s.grant("Role", "RoleBinding", rule(group, `"widgets"`, `"list"`), `{"kind":"ServiceAccount","namespace":"{ns}","name":"operator"}`)
			s.takes(200, "GET", widgets, "Impersonate-User: system:serviceaccount:{ns}:operator")
			s.call("GET", widgets, "", "Impersonate-User: system:serviceaccount:{ns}:other")
			s.note(s.send("GET", widgets, "", "Impersonate-User: system:serviceaccount:default:operator").code)
		}},
		{"service accounts are in groups", func(t *testing.T, s *script) {
			s.grant("Role", "RoleBinding", rule(group, `"widgets"`, `"list"`), `{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"system:serviceaccounts:{ns}"}`)
			s.takes(200, "GET", widgets, "Impersonate-User: system:serviceaccount:{ns}:any")
			s.note(s.send("GET", widgets, "", "Impersonate-User: system:serviceaccount:default:any").code, s.send("GET", widgets, "", asUser).code)
		}},
		{"masters may do everything", func(t *testing.T, s *script) {
			s.note(s.send("GET", all, "", asUser, "Impersonate-Group: system:masters").code)
		}},
		{"discovery is for everybody", func(t *testing.T, s *script) {
			for _, path := range []string{"/api", "/apis", "/api/v1", "/apis/conformance.gopf.dev", "/apis/conformance.gopf.dev/v1", "/version", "/healthz"} {
				s.note(path, s.send("GET", path, "", asUser).code)
			}
		}},
		{"what is allowed can be taken back", func(t *testing.T, s *script) {
			s.grant("Role", "RoleBinding", rule(group, `"widgets"`, `"list"`), "")
			s.takes(200, "GET", widgets, asUser)
			s.send("DELETE", roleBindings+"/{ns}", "")
			s.takes(403, "GET", widgets, asUser)
			s.note("refused again")
		}},
	}
}
