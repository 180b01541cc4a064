package attacks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/test/e2e/kit"
)

const group = "attacks.gopf.dev/v1/"

// The resources that the operator serves.
const (
	targets  = group + "targets"  // with a status subresource and webhooks
	plains   = group + "plains"   // with neither
	guardeds = group + "guardeds" // with a status subresource and a policy that reserves the operator's annotations
)

var kinds = kit.Kinds{Namespaced: map[string]string{targets: "Target", plains: "Plain", guardeds: "Guarded"}}

type fields = kit.Fields

// tenant is an account that may only touch objects in its own namespace.
type tenant struct {
	*kit.Space
	raw *http.Client
}

// newTenant makes a namespace and a ServiceAccount with permissions in it. Only
// resources with a status subresource can withhold the status from their editors, so
// both tenants may write it.
func newTenant(t *testing.T, name string) tenant {
	t.Helper()
	const rbac = "rbac.authorization.k8s.io"
	with := kit.Kinds{Namespaced: map[string]string{rbac + "/v1/roles": "Role", rbac + "/v1/rolebindings": "RoleBinding"}}
	admin := kit.NewSpace(t, cluster.Config, name+"-", with)
	admin.Create(rbac+"/v1/roles", "tenant", fields{"rules": []any{fields{
		"apiGroups": []any{"attacks.gopf.dev"}, "resources": []any{"*"},
		"verbs": []any{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"},
	}}})
	admin.Create(rbac+"/v1/rolebindings", "tenant", fields{
		"roleRef":  fields{"apiGroup": rbac, "kind": "Role", "name": "tenant"},
		"subjects": []any{fields{"kind": "ServiceAccount", "namespace": admin.Name, "name": "tenant"}},
	})
	config := rest.CopyConfig(cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + admin.Name + ":tenant",
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + admin.Name, "system:authenticated"}}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return tenant{admin.As(client, kinds), raw}
}

// sendRaw creates an object of a spec that is JSON already. The fields of the metadata
// besides the name are optional.
func (n tenant) sendRaw(ctx context.Context, resource, name, spec string, metadata ...string) error {
	body := `{"apiVersion":"attacks.gopf.dev/v1","kind":"` + kinds.Namespaced[resource] + `","metadata":{"name":"` + name + `"`
	for _, m := range metadata {
		body += "," + m
	}
	return n.post(ctx, resource, body+`},"spec":`+spec+`}`)
}

// post creates an object of JSON that Go could not decode and encode unharmed.
func (n tenant) post(ctx context.Context, resource, body string) error {
	url := cluster.Config.Host + "/apis/attacks.gopf.dev/v1/namespaces/" + n.Name + "/" + kit.GVR(resource).Resource
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := n.raw.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusCreated {
		return fmt.Errorf("create %s: %d %.500s", resource, resp.StatusCode, text)
	}
	return nil
}

func (n tenant) annotate(resource, name string, annotations fields) error {
	return n.TryPatch(resource, name, fields{"metadata": fields{"annotations": annotations}})
}

// await waits until an object is as wanted.
func (n tenant) await(what, resource, name string, holds func(*unstructured.Unstructured) bool) {
	n.T.Helper()
	for end := time.Now().Add(time.Duration(float64(kit.Patience) * busy())); time.Now().Before(end); {
		if o := n.Get(resource, name); o != nil && holds(o) {
			return
		}
		time.Sleep(50 * time.Millisecond) // nothing else tells when a cluster is as it should be
	}
	n.T.Errorf("it is not so that %s: %s", what, name)
}

// handled reports whether the operator has finished its last change of the object.
func handled(o *unstructured.Unstructured) bool {
	result, _, _ := unstructured.NestedString(o.Object, "status", "create", "name")
	base := o.GetAnnotations()[lastHandled] + o.GetAnnotations()[lastHandled+"-gz"]
	return result == o.GetName() && base != ""
}

// clear deletes all objects of the tenant, and waits until the operator lets them go.
func (n tenant) clear() {
	n.T.Helper()
	for resource := range kinds.Namespaced {
		if err := n.Of(resource).DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			n.T.Fatal(err)
		}
	}
	for resource := range kinds.Namespaced {
		kit.Eventually(n.T, func() error {
			left, err := n.Of(resource).List(context.Background(), metav1.ListOptions{Limit: 3})
			if err == nil && len(left.Items) > 0 {
				return apierrors.NewConflict(kit.GVR(resource).GroupResource(), left.Items[0].GetName(), context.DeadlineExceeded)
			}
			return err
		})
	}
}

// patchUntil changes an object as fast as the API server lets it, and returns how
// often it did.
func (n tenant) patchUntil(end time.Time, resource, name string, change func(i int) fields) (done int) {
	for time.Now().Before(end) {
		raw, _ := json.Marshal(change(done))
		if _, err := n.Of(resource).Patch(context.Background(), name, types.MergePatchType, raw, metav1.PatchOptions{}); err == nil {
			done++
		}
	}
	return done
}

// of returns the tenant with another test.
func (n tenant) of(t *testing.T) tenant {
	space := *n.Space
	space.T = t
	return tenant{&space, n.raw}
}
