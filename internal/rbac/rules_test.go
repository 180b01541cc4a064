package rbac

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRulesArePairsOfRolesAndBindings(t *testing.T) {
	missing := []Missing{
		{Group: "kopf.dev", Resource: "kopfexamples", Verbs: []string{"patch"}, Namespaces: []string{"b", "a"}},
		{Group: "kopf.dev", Resource: "kopfexamples/status", Verbs: []string{"patch"}, Namespaces: []string{"a"}},
		{Group: "kopf.dev", Resource: "kopfexamples", Verbs: []string{"get"}, Namespaces: []string{"b"}},
		{Resource: "namespaces", Verbs: []string{"list", "watch"}},
		{Resource: "nodes", Verbs: []string{"list", "watch"}},
	}
	want := `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "gopf-4bdfe679"}
rules:
- apiGroups: [""]
  resources: ["namespaces", "nodes"]
  verbs: ["list", "watch"]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "gopf-4bdfe679"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "gopf-4bdfe679"}
subjects:
- {kind: ServiceAccount, namespace: "ops", name: "operator"}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: "gopf-6d848b73", namespace: "a"}
rules:
- apiGroups: ["kopf.dev"]
  resources: ["kopfexamples", "kopfexamples/status"]
  verbs: ["patch"]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: "gopf-6d848b73", namespace: "a"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: "gopf-6d848b73"}
subjects:
- {kind: ServiceAccount, namespace: "ops", name: "operator"}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: "gopf-dd675b0f", namespace: "b"}
rules:
- apiGroups: ["kopf.dev"]
  resources: ["kopfexamples"]
  verbs: ["patch", "get"]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: "gopf-dd675b0f", namespace: "b"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: "gopf-dd675b0f"}
subjects:
- {kind: ServiceAccount, namespace: "ops", name: "operator"}
`
	if diff := cmp.Diff(want, Rules(missing, SubjectOf("system:serviceaccount:ops:operator"))); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestSubjectsOfUserNames(t *testing.T) {
	for name, want := range map[string]string{
		"system:serviceaccount:ns:sa": "- {kind: ServiceAccount, namespace: \"ns\", name: \"sa\"}\n",
		"jane@example.com":            "- {kind: User, apiGroup: rbac.authorization.k8s.io, name: \"jane@example.com\"}\n",
		"":                            "- {kind: ServiceAccount, namespace: \"\", name: \"\"} # fill in the operator's service account\n",
	} {
		if got := subject(SubjectOf(name)); got != want {
			t.Errorf("%q: got %s", name, got)
		}
	}
}

func TestRulesAreLimitedToNames(t *testing.T) {
	text := Rules([]Missing{
		{Group: "g", Resource: "xs", Name: "mine", Verbs: []string{"get", "patch"}},
		{Group: "g", Resource: "xs", Verbs: []string{"create"}},
	}, Subject{})
	for _, want := range []string{
		"- apiGroups: [\"g\"]\n  resources: [\"xs\"]\n  resourceNames: [\"mine\"]\n  verbs: [\"get\", \"patch\"]\n",
		"- apiGroups: [\"g\"]\n  resources: [\"xs\"]\n  verbs: [\"create\"]\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s\nis not in\n%s", want, text)
		}
	}
}
