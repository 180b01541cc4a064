package faults_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

const rbac = "rbac.authorization.k8s.io/v1"

var (
	accounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	roles    = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}
	bindings = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}
)

// fields are a part of an object.
type fields = map[string]any

// make makes an object of any kind in the namespace, or posts to a subresource.
func (s *space) make(of schema.GroupVersionResource, apiVersion, kind string, f fields, subresource ...string) *unstructured.Unstructured {
	s.t.Helper()
	f["apiVersion"], f["kind"], f["metadata"] = apiVersion, kind, fields{"name": "operator"}
	made, err := s.cluster.Resource(of).Namespace(s.name).
		Create(s.ctx(), &unstructured.Unstructured{Object: f}, metav1.CreateOptions{}, subresource...)
	if err != nil {
		s.t.Fatal(err)
	}
	return made
}

// newAccount makes a service account that may do nothing, a role for it, and the
// configuration of an operator with its token.
func newAccount(s *space, p *proxy) *rest.Config {
	s.t.Helper()
	s.make(accounts, "v1", "ServiceAccount", fields{})
	s.make(roles, rbac, "Role", fields{"rules": []any{fields{
		"apiGroups": []any{patientsResource.Group},
		"resources": []any{patients, patients + "/status"},
		"verbs":     []any{"get", "list", "watch", "patch"},
	}}})
	token := s.make(accounts, "authentication.k8s.io/v1", "TokenRequest", fields{"spec": fields{}}, "token")
	config := p.config()
	config.BearerToken, _, _ = unstructured.NestedString(token.Object, "status", "token")
	return config
}

// grant lets the account do what its role says.
func (s *space) grant() {
	s.t.Helper()
	s.make(bindings, rbac, "RoleBinding", fields{
		"roleRef":  fields{"apiGroup": roles.Group, "kind": "Role", "name": "operator"},
		"subjects": []any{fields{"kind": "ServiceAccount", "name": "operator", "namespace": s.name}},
	})
}

// revoke takes that back, and gives the server a moment to notice.
func (s *space) revoke() {
	s.t.Helper()
	if err := s.cluster.Resource(bindings).Namespace(s.name).Delete(s.ctx(), "operator", metav1.DeleteOptions{}); err != nil {
		s.t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
}

// employ starts an operator that is a service account, and may do what it needs.
func employ(t *testing.T) *operator {
	t.Helper()
	s, p := newSpace(t, cluster), newProxy(t, cluster)
	config := newAccount(s, p)
	s.grant()
	op, n := newOperator()
	o := runAs(s, p, config, op, n)
	o.following(patients)
	return o
}

// The account may not list definitions, so that this is a test of that, too.
func TestPermissionsAreRevokedAndGrantedAgain(t *testing.T) {
	t.Parallel()
	o := employ(t)
	o.live(fault{
		begin: func(p *proxy) {
			o.space.revoke()
			p.cutStreams("") // servers do not look at permissions again
		},
		lasts: 2 * time.Second,
		end:   func(*proxy) { o.space.grant() },
		seen:  "forbidden",
	})
}

func TestPermissionsAreRevokedWhileTheStreamStaysOpen(t *testing.T) {
	t.Parallel()
	o := employ(t)
	o.live(fault{
		begin: func(*proxy) { o.space.revoke() },
		lasts: 2 * time.Second,
		end:   func(*proxy) { o.space.grant() },
		seen:  "Throttling for",
	})
}

// The server itself refuses the token for a while.
func TestATokenThatIsRefusedForAWhile(t *testing.T) {
	t.Parallel()
	o := employ(t)
	f := cutting(storm(everything, func(x *exchange) {
		x.r.Header.Set("Authorization", "Bearer "+strings.Repeat("x", 20))
		x.pass()
	}, 2*time.Second))
	f.seen = "rejects the credentials"
	o.live(f)
}
