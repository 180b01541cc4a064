package manifests

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// kinds finds the resource of a kind. It requests discovery of single group versions and
// caches the result. client-go's discovery would link all types of Kubernetes into the
// executable.
type kinds struct {
	base   *url.URL
	client *http.Client
	known  map[schema.GroupVersionKind]resource
}

// resource is the resource of a kind.
type resource struct {
	schema.GroupVersionResource
	namespaced bool
}

func newKinds(config *rest.Config, client *http.Client) (*kinds, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	return &kinds{base: base, client: client, known: map[schema.GroupVersionKind]resource{}}, nil
}

// unknownKindError means that the cluster does not serve a kind.
type unknownKindError struct{ schema.GroupVersionKind }

func (e unknownKindError) Error() string {
	return fmt.Sprintf("the cluster does not serve the kind %s in %s; correct the spelling, or also apply its CustomResourceDefinition",
		e.Kind, e.GroupVersion())
}

// find returns the resource of a kind.
func (k *kinds) find(ctx context.Context, kind schema.GroupVersionKind) (resource, error) {
	if known, found := k.known[kind]; found {
		return known, nil
	}
	list, err := k.list(ctx, kind)
	if err != nil {
		return resource{}, err
	}
	for _, r := range list.APIResources {
		// Subresources have a slash, and some of them the kind of their parent.
		if r.Kind == kind.Kind && !strings.Contains(r.Name, "/") {
			found := resource{kind.GroupVersion().WithResource(r.Name), r.Namespaced}
			k.known[kind] = found
			return found, nil
		}
	}
	return resource{}, unknownKindError{kind}
}

// list requests the resources in the group version of the kind.
func (k *kinds) list(ctx context.Context, kind schema.GroupVersionKind) (*metav1.APIResourceList, error) {
	path := k.base.JoinPath("apis", kind.Group, kind.Version)
	if kind.Group == "" {
		path = k.base.JoinPath("api", kind.Version)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, path.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	response, err := k.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("discover the kinds of the cluster: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return nil, fmt.Errorf("discover the kinds of the cluster: %w", err)
	case response.StatusCode == http.StatusNotFound:
		return nil, unknownKindError{kind}
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("discover the kinds of the cluster: %s: %s", response.Status, text)
	}
	list := &metav1.APIResourceList{}
	if err := json.Unmarshal(text, list); err != nil {
		return nil, fmt.Errorf("discover the kinds of the cluster: %w", err)
	}
	return list, nil
}
