package gopftest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"gopf.dev/gopf"
)

// Environment variables of "gopf permissions", which runs tests with the permissions of a
// manifest.
const (
	asVariable    = "GOPF_TEST_AS"    // path of the manifest with the service account and its roles
	usedVariable  = "GOPF_TEST_USED"  // path of the file for the used permissions
	learnVariable = "GOPF_TEST_LEARN" // if set, requests without a permission are recorded and executed
)

// assumed is the account that operators of a cluster act as, instead of an administrator.
type assumed struct {
	user     string
	roles    map[string][]rbacv1.PolicyRule // by kind, namespace and name
	bindings []rbacv1.RoleBinding           // without a namespace: of the whole cluster
	learn    bool
	report   string

	mu   sync.Mutex
	t    testing.TB // nil after the end of the operator
	seen map[used]bool
}

// used is a request of an operator in the report. Without a verb, it is a call of a handler.
type used struct {
	Verb      string `json:"verb,omitempty"`
	Group     string `json:"group,omitempty"`
	Resource  string `json:"resource,omitempty"` // with the subresource
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Handler   string `json:"handler,omitempty"` // id and place of the handler that sent it; empty means the framework
	Version   string `json:"version,omitempty"`
	Denied    bool   `json:"denied,omitempty"`
	Test      string `json:"test"`
}

// assume lets the operator act as the account in the manifest of GOPF_TEST_AS. It returns
// the configuration for the operator. Requests of the test itself stay privileged.
func (c *Cluster) assume(t testing.TB, op *gopf.Operator) *rest.Config {
	t.Helper()
	path := os.Getenv(asVariable)
	if path == "" {
		return c.RESTConfig()
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%s: %v", asVariable, err)
	}
	a, err := parseAssumed(text)
	if err != nil {
		t.Fatalf("%s: %s: %v", asVariable, path, err)
	}
	a.learn, a.report, a.t, a.seen = os.Getenv(learnVariable) != "", os.Getenv(usedVariable), t, map[used]bool{}
	if c.Real() {
		if a.learn {
			return c.RESTConfig()
		}
		c.Load(t, path)
		return c.As(a.user)
	}
	t.Cleanup(a.end)
	c.furnish(t, filepath.Join(filepath.Dir(path), workloadFile))
	c.assumed.Store(a)
	gopf.TestSeam{}.Mark(op, a.mark)
	return c.As(a.user)
}

// workloadFile is the manifest next to the roles that has the empty webhook configurations.
const workloadFile = "operator.yaml"

// furnish creates the webhook configurations of a manifest, unless they exist. In a cluster,
// the manifest creates them empty, because the operator may change but not create them. A
// missing file means that there are none.
func (c *Cluster) furnish(t testing.TB, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	if err != nil {
		t.Fatalf("%s: %v", asVariable, err)
	}
	for _, doc := range documents(text) {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(doc, &obj.Object); err != nil {
			t.Fatalf("%s: %s: %v", asVariable, path, err)
		}
		plural := map[string]string{"ValidatingWebhookConfiguration": "validatingwebhookconfigurations", "MutatingWebhookConfiguration": "mutatingwebhookconfigurations"}[obj.GetKind()]
		if plural == "" {
			continue
		}
		if _, exists := c.Lookup(t, "admissionregistration.k8s.io/v1/"+plural, "", obj.GetName()); !exists {
			c.Create(t, obj)
		}
	}
}

// documents returns the YAML documents of a manifest.
func documents(text []byte) [][]byte {
	return bytes.Split(append([]byte("\n"), text...), []byte("\n---"))
}

type handlerKey struct{}

// mark stores the handler in the context of its call, so its requests can be recognized. It
// also reports the call.
func (a *assumed) mark(ctx context.Context, id, where string) context.Context {
	name := id + " at " + where
	a.mu.Lock()
	defer a.mu.Unlock()
	a.record(used{Handler: name})
	return context.WithValue(ctx, handlerKey{}, name)
}

// parseAssumed reads the account, its roles and their bindings.
func parseAssumed(text []byte) (*assumed, error) {
	a := &assumed{roles: map[string][]rbacv1.PolicyRule{}}
	for _, doc := range documents(text) {
		var head struct {
			Kind string `json:"kind"`
			rbacv1.RoleBinding
			Rules []rbacv1.PolicyRule `json:"rules"`
		}
		if err := yaml.Unmarshal(doc, &head); err != nil {
			return nil, err
		}
		switch head.Kind {
		case "ServiceAccount":
			account := corev1.ServiceAccount{ObjectMeta: head.ObjectMeta}
			if a.user == "" {
				a.user = "system:serviceaccount:" + account.Namespace + ":" + account.Name
			}
		case "ClusterRole", "Role":
			a.roles[head.Kind+" "+head.Namespace+"/"+head.Name] = head.Rules
		case "ClusterRoleBinding", "RoleBinding":
			a.bindings = append(a.bindings, head.RoleBinding)
		}
	}
	if a.user == "" {
		return nil, errors.New("there is no ServiceAccount")
	}
	return a, nil
}

// permits reports whether the roles of the account allow the request, and records it. A
// request that is not allowed fails the test, unless permissions are being learned.
func (a *assumed) permits(ctx context.Context, user authenticationv1.UserInfo, rt route) bool {
	allowed := a.grants(user, rt)
	if rt.group == "authorization.k8s.io" {
		return allowed // the operator's own check of its permissions, which every account may send
	}
	resource := strings.TrimSuffix(rt.resource+"/"+rt.subresource, "/")
	u := used{Verb: rt.verb, Group: rt.group, Version: rt.version, Resource: resource, Name: rt.name, Namespace: rt.namespace, Denied: !allowed}
	u.Handler, _ = ctx.Value(handlerKey{}).(string)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.record(u) && !allowed && !a.learn {
		a.t.Error(u.complaint())
	}
	return allowed || a.learn
}

// record adds a line to the report, once. It reports whether the line is new, and whether
// the test still runs. The caller must hold the lock.
func (a *assumed) record(u used) bool {
	if a.t == nil || a.seen[u] {
		return false
	}
	a.seen[u] = true
	u.Test = a.t.Name()
	if err := a.write(u); err != nil {
		a.t.Errorf("write the report of used permissions: %v", err)
	}
	return true
}

// complaint describes a denied request, and how to allow it.
func (u used) complaint() string {
	what := u.Verb + " " + u.Resource
	if u.Group != "" {
		what += " of " + u.Group
	}
	if u.Handler == "" {
		return what + " is not granted; run 'gopf manifests'"
	}
	name := strings.TrimPrefix(u.Group+"/"+u.Version+"/"+u.Resource, "/")
	return fmt.Sprintf("%s is not granted (handler %s): declare it with gopf.RegisterType[gopf.Unstructured](op, %q, gopf.May(%q)), and run 'gopf manifests'", what, u.Handler, name, u.Verb)
}

func (a *assumed) grants(user authenticationv1.UserInfo, rt route) bool {
	return slices.ContainsFunc(a.bindings, func(b rbacv1.RoleBinding) bool {
		if b.Namespace != "" && b.Namespace != rt.namespace || !bound(b.Subjects, b.Namespace, user) {
			return false
		}
		namespace := ""
		if b.RoleRef.Kind == "Role" {
			namespace = b.Namespace
		}
		return slices.ContainsFunc(a.roles[b.RoleRef.Kind+" "+namespace+"/"+b.RoleRef.Name], covers(rt))
	})
}

// write appends a line to the report. Test processes may write to it concurrently.
func (a *assumed) write(u used) error {
	if a.report == "" {
		return nil
	}
	line, err := json.Marshal(u)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(a.report, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

// end keeps late requests from reporting to a test that has ended.
func (a *assumed) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.t = nil
}
