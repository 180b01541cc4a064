package attacks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
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
	owners   = group + "owners"   // with a reconcile handler that declares pieces and parts
	pieces   = group + "pieces"
	parts    = group + "parts" // with a webhook
)

var kinds = kit.Kinds{Namespaced: map[string]string{targets: "Target", plains: "Plain", guardeds: "Guarded", owners: "Owner", pieces: "Piece", parts: "Part"}}

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
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, n.url(resource), strings.NewReader(body))
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
	wait := startWatch(os.Getpid())
	for !wait.late(kit.Patience) {
		if n.sees(resource, name, holds) {
			return
		}
	}
	n.T.Errorf("it is not so that %s: %s", what, name)
}

// sees watches the object for a while, and reports whether it is as wanted. To read it
// again and again would cost the API server more than the attack.
func (n tenant) sees(resource, name string, holds func(*unstructured.Unstructured) bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) // then it is read again
	defer cancel()
	w, err := n.Of(resource).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		time.Sleep(50 * time.Millisecond) // the API server may be overloaded
		return false
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case e, open := <-w.ResultChan():
			o, ok := e.Object.(*unstructured.Unstructured)
			if !open || e.Type == watch.Error {
				return false
			}
			if ok && e.Type != watch.Deleted && holds(o) {
				return true
			}
		}
	}
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
	n.clearAll(targets, plains, guardeds, owners)
	n.clearAll(pieces, parts) // the operator would create them again
}

func (n tenant) clearAll(resources ...string) {
	n.T.Helper()
	for _, resource := range resources {
		if err := n.Of(resource).DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			n.T.Fatal(err)
		}
	}
	for _, resource := range resources {
		n.awaitNone(resource)
	}
}

// awaitNone waits until the tenant has no objects of the resource. The interval grows
// further than that of [kit.Eventually]: a list of large objects costs the API server more
// than their deletion.
func (n tenant) awaitNone(resource string) {
	n.T.Helper()
	pause := 10 * time.Millisecond
	for end := time.Now().Add(kit.Patience); ; pause = min(2*pause, 500*time.Millisecond) {
		left, err := n.names(resource)
		switch {
		case err == nil && len(left) == 0:
			return
		case time.Now().After(end):
			n.T.Fatalf("after %v, there are still %d objects of %s: %v", kit.Patience, len(left), resource, err)
		}
		time.Sleep(pause) // to watch them would cost the API server more
	}
}

// names returns the names of all objects, without their contents, which may be large. It
// reads them from the cache of the API server: decoding them from its storage takes
// seconds, and slows down what the test waits for.
func (n tenant) names(resource string) (all []string, err error) {
	req, err := http.NewRequest(http.MethodGet, n.url(resource)+"?resourceVersion=0", nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
	resp, err := n.raw.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var list metav1.PartialObjectMetadataList
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil || resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("list %s: %d %w", resource, resp.StatusCode, err)
	}
	for _, o := range list.Items {
		all = append(all, o.Name)
	}
	return all, nil
}

// url returns the address of the tenant's objects.
func (n tenant) url(resource string) string {
	return cluster.Config.Host + "/apis/attacks.gopf.dev/v1/namespaces/" + n.Name + "/" + kit.GVR(resource).Resource
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
