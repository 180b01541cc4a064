package deploy

import (
	"bytes"
	"fmt"
	"strings"

	"gopf.dev/gopf/internal/permissions"
)

// Access returns the namespace, the service account, and the roles with their bindings, as
// one text. A comment at each rule names what needs it.
func (m *Model) Access() []byte { return m.access(m.head()) }

// head returns the namespace and the service account.
func (m *Model) head() []object {
	return []object{
		{"apiVersion": "v1", "kind": "Namespace", "metadata": object{
			"name": m.Namespace, "labels": object{"pod-security.kubernetes.io/enforce": "restricted"},
		}},
		{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": m.meta(m.Name)},
	}
}

func (m *Model) access(head []object) []byte {
	docs := [][]byte{encodeAll(head)}
	for _, role := range m.Permissions.Roles(m.Target) {
		docs = append(docs, m.role(role))
		if role.Account == permissions.Operator {
			docs = append(docs, m.binding(role))
		}
	}
	return bytes.Join(docs, []byte("---\n"))
}

func kindOf(r permissions.Role, suffix string) string {
	if r.Namespace == "" {
		return "ClusterRole" + suffix
	}
	return "Role" + suffix
}

func (m *Model) roleMeta(r permissions.Role) object {
	meta := m.clusterMeta(r.Name)
	if r.Namespace != "" {
		meta["namespace"] = r.Namespace
	}
	return meta
}

// role returns a role as text, because comments are no part of objects.
func (m *Model) role(r permissions.Role) []byte {
	var b bytes.Buffer
	b.Write(encode(object{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kindOf(r, ""), "metadata": m.roleMeta(r)}))
	b.WriteString("rules:\n")
	for _, rule := range r.Rules {
		for _, c := range rule.Comments() {
			fmt.Fprintf(&b, "# %s\n", c)
		}
		fmt.Fprintf(&b, "- apiGroups: [%q]\n  resources: [%q]\n", rule.Group, rule.Resource)
		if rule.Name != "" {
			fmt.Fprintf(&b, "  resourceNames: [%q]\n", rule.Name)
		}
		fmt.Fprintf(&b, "  verbs: [%s]\n", strings.Join(rule.Verbs, ", "))
	}
	return b.Bytes()
}

func (m *Model) binding(r permissions.Role) []byte {
	return encode(object{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kindOf(r, "Binding"), "metadata": m.roleMeta(r),
		"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": kindOf(r, ""), "name": r.Name},
		"subjects": list{object{"kind": "ServiceAccount", "name": m.Name, "namespace": m.Namespace}},
	})
}
