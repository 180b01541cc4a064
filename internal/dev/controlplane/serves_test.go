package controlplane

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestTheVersionIsThatOfKubernetes(t *testing.T) {
	c := connect(t, shared(t))
	_, version := c.do("GET", "/version", "")
	src, err := findSource(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := lookup(version, "gitVersion"); got != src.version {
		t.Errorf("got version %s, want %s", got, src.version)
	}
	if got := lookup(version, "major") + "." + lookup(version, "minor"); !strings.HasPrefix(src.version, "v"+got+".") {
		t.Errorf("got version %s, want that of %s", got, src.version)
	}
}

func TestServiceAccountTokensAreAuthenticatedAndRBACDecides(t *testing.T) {
	c := connect(t, shared(t))
	ns := namespace(t, c)
	c.await("/api/v1/namespaces/"+ns+"/serviceaccounts/default", func(code int, _ map[string]any) bool { return code == http.StatusOK })
	answer := c.create("/api/v1/namespaces/"+ns+"/serviceaccounts/default/token",
		`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":600}}`)
	token := lookup(answer, "status", "token")

	bearer, path := c.as(token), "/api/v1/namespaces/"+ns+"/configmaps"
	if code, status := bearer.do("GET", path, ""); code != http.StatusForbidden ||
		!strings.Contains(lookup(status, "message"), "system:serviceaccount:"+ns+":default") {
		t.Errorf("without a role: got %d %v, want 403 that names the account", code, status["message"])
	}
	if code, _ := c.as(token+"x").do("GET", path, ""); code != http.StatusUnauthorized {
		t.Errorf("with a forged token: got %d, want 401", code)
	}
	c.create("/apis/rbac.authorization.k8s.io/v1/namespaces/"+ns+"/rolebindings", `{"metadata":{"name":"view"},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"},
		"subjects":[{"kind":"ServiceAccount","name":"default","namespace":"`+ns+`"}]}`)
	bearer.await(path, func(code int, _ map[string]any) bool { return code == http.StatusOK })
}

func TestRootCertificateIsPublished(t *testing.T) {
	c := connect(t, shared(t))
	ns := namespace(t, c)
	c.await("/api/v1/namespaces/"+ns+"/configmaps/kube-root-ca.crt", func(_ int, object map[string]any) bool {
		return strings.Contains(lookup(object, "data", "ca.crt"), "BEGIN CERTIFICATE")
	})
}

func TestOwnedObjectsAreCollected(t *testing.T) {
	c := connect(t, shared(t))
	path := "/api/v1/namespaces/" + namespace(t, c) + "/configmaps"
	owner := c.create(path, `{"metadata":{"name":"owner"}}`)
	c.create(path, fmt.Sprintf(`{"metadata":{"name":"owned","ownerReferences":[
		{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":%q}]}}`, lookup(owner, "metadata", "uid")))
	c.do("DELETE", path+"/owner", "")
	c.await(path+"/owned", gone)
}

func TestNamespacesAreDeletedWithTheirObjects(t *testing.T) {
	c := connect(t, shared(t))
	path := "/api/v1/namespaces/" + namespace(t, c)
	c.create(path+"/configmaps", `{"metadata":{"name":"inside"}}`)
	c.do("DELETE", path, "")
	c.await(path, gone)
}

func TestVolumesAreBound(t *testing.T) {
	c := connect(t, shared(t))
	ns := namespace(t, c)
	claims := "/api/v1/namespaces/" + ns + "/persistentvolumeclaims"
	c.create(claims, `{"metadata":{"name":"claim"},"spec":{"storageClassName":"`+ns+`",
		"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`)
	c.create("/api/v1/persistentvolumes", `{"metadata":{"name":"`+ns+`"},"spec":{"storageClassName":"`+ns+`",
		"accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"},"hostPath":{"path":"/nonexistent"}}}`)
	t.Cleanup(func() { c.do("DELETE", "/api/v1/persistentvolumes/"+ns, "") })
	c.await(claims+"/claim", func(_ int, object map[string]any) bool { return lookup(object, "status", "phase") == "Bound" })
}

func TestDeploymentsAndJobsMakePods(t *testing.T) {
	c := connect(t, shared(t))
	ns := namespace(t, c)
	const pod = `{"metadata":{"labels":{"app":"x"}},"spec":{"restartPolicy":%q,"containers":[{"name":"x","image":"x"}]}}`
	c.create("/apis/apps/v1/namespaces/"+ns+"/deployments", `{"metadata":{"name":"deployment"},"spec":{
		"selector":{"matchLabels":{"app":"x"}},"template":`+fmt.Sprintf(pod, "Always")+`}}`)
	c.create("/apis/batch/v1/namespaces/"+ns+"/jobs", `{"metadata":{"name":"job"},"spec":{"template":`+fmt.Sprintf(pod, "Never")+`}}`)
	c.await("/api/v1/namespaces/"+ns+"/pods", func(_ int, list map[string]any) bool {
		items, _ := list["items"].([]any)
		return len(items) == 2
	})
}

// namespace creates a namespace for the test.
func namespace(t *testing.T, c *cluster) string {
	t.Helper()
	return lookup(c.create("/api/v1/namespaces", `{"metadata":{"generateName":"controlplane-"}}`), "metadata", "name")
}
