package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	discovery "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"gopf.dev/gopf/kind"
)

// Discovery is the result of API discovery.
type Discovery struct {
	Resources []kind.Info

	// Failed are the groups, or versions of groups, whose discovery failed. Earlier
	// knowledge about them may still be valid, and some of their resources may be in
	// Resources.
	Failed map[schema.GroupVersion]error
}

// Discover lists the resources of the given groups, or of all groups. It uses
// aggregated discovery where the server supports it. A broken group does not hide the
// others; it is in [Discovery.Failed].
func (c *Client) Discover(ctx context.Context, groups ...string) (Discovery, error) {
	d := Discovery{Failed: map[schema.GroupVersion]error{}}
	wanted := func(group string) bool { return len(groups) == 0 || slices.Contains(groups, group) }
	if wanted("") {
		if err := c.discoverRoot(ctx, "/api", wanted, &d); err != nil {
			return Discovery{}, err
		}
	}
	if len(groups) == 0 || slices.ContainsFunc(groups, func(g string) bool { return g != "" }) {
		if err := c.discoverRoot(ctx, "/apis", wanted, &d); err != nil {
			return Discovery{}, err
		}
	}
	slices.SortFunc(d.Resources, func(a, b kind.Info) int { return strings.Compare(a.String(), b.String()) })
	return d, nil
}

// Version returns the version of the server. It is the cheapest request, and therefore
// used to check whether the server is reachable.
func (c *Client) Version(ctx context.Context) (*version.Info, error) {
	v := &version.Info{}
	if err := c.document(ctx, "/version", "", v); err != nil {
		return nil, err
	}
	return v, nil
}

// acceptAggregated requests aggregated discovery. Kubernetes before 1.30 has only the
// beta version, which has the same format.
const acceptAggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
	"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"

// root is any of the documents that /api and /apis may return.
type root struct {
	Kind     string                        `json:"kind"`
	Items    []discovery.APIGroupDiscovery `json:"items"`    // APIGroupDiscoveryList
	Groups   []metav1.APIGroup             `json:"groups"`   // APIGroupList
	Versions []string                      `json:"versions"` // APIVersions, of the core group
}

func (c *Client) discoverRoot(ctx context.Context, path string, wanted func(group string) bool, d *Discovery) error {
	var r root
	if err := c.document(ctx, path, acceptAggregated, &r); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	if r.Kind == "APIGroupDiscoveryList" {
		for _, g := range r.Items {
			if wanted(g.Name) {
				d.addGroup(g)
			}
		}
		return nil
	}
	if len(r.Versions) > 0 {
		core := metav1.APIGroup{}
		for _, v := range r.Versions {
			core.Versions = append(core.Versions, metav1.GroupVersionForDiscovery{GroupVersion: v, Version: v})
		}
		r.Groups = append(r.Groups, core)
	}
	c.discoverGroups(ctx, path, slices.DeleteFunc(r.Groups, func(g metav1.APIGroup) bool { return !wanted(g.Name) }), d)
	return ctx.Err()
}

// groupLimit limits discovery of one version of a group, including retries. A broken
// group must not delay the others.
const groupLimit = 3 * time.Second

// discoverGroups reads the documents of all versions of the groups.
func (c *Client) discoverGroups(ctx context.Context, path string, groups []metav1.APIGroup, d *Discovery) {
	ctx, cancel := context.WithTimeout(ctx, groupLimit)
	defer cancel()
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, g := range groups {
		for _, v := range g.Versions {
			gv := schema.GroupVersion{Group: g.Name, Version: v.Version}
			all.Go(func() {
				var list metav1.APIResourceList
				err := c.document(ctx, path+"/"+gv.String(), "", &list)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					d.addList(gv, list, g.Name == "" || g.PreferredVersion.Version == gv.Version)
				case !apierrors.IsNotFound(err):
					d.Failed[gv] = err
				}
			})
		}
	}
	all.Wait()
}

func (c *Client) document(ctx context.Context, path, accept string, into any) error {
	return c.do(ctx, &call{verb: "discover", method: http.MethodGet, path: path, accept: accept, repeatable: true,
		read: func(a *response) error {
			return c.slurp(a, func(raw []byte) error {
				if err := json.Unmarshal(raw, into); err != nil {
					return &MalformedError{err}
				}
				return nil
			})
		}})
}

// Document reads a document of the API server that is not an object, such as an OpenAPI
// schema. read gets the response body while it arrives. An error of read is returned, and
// the request is not repeated.
func (c *Client) Document(ctx context.Context, path string, read func(io.Reader) error) error {
	return c.do(ctx, &call{verb: "discover", method: http.MethodGet, path: path, repeatable: true,
		read: func(a *response) error {
			if err := read(a.Body); err != nil {
				return callbackError{err}
			}
			return nil
		}})
}

// addGroup adds a group of aggregated discovery. Its first version is the preferred one
// even if it is stale: that the server cannot reach it at the moment does not make
// another version preferred.
func (d *Discovery) addGroup(g discovery.APIGroupDiscovery) {
	for i, v := range g.Versions {
		gv := schema.GroupVersion{Group: g.Name, Version: v.Version}
		if v.Freshness == discovery.DiscoveryFreshnessStale {
			d.Failed[gv] = fmt.Errorf("discover %s: the server has only stale data", gv)
		}
		for _, r := range v.Resources {
			if r.ResponseKind == nil || r.Resource == "" {
				continue // only listed for its subresources
			}
			info := kind.Info{
				Group: gv.Group, Version: gv.Version, Plural: r.Resource,
				Kind: r.ResponseKind.Kind, Singular: r.SingularResource,
				ShortNames: r.ShortNames, Categories: r.Categories, Verbs: r.Verbs,
				Namespaced: r.Scope == discovery.ScopeNamespace,
				Preferred:  gv.Group == "" || i == 0,
			}
			for _, s := range r.Subresources {
				info.Subresources = append(info.Subresources, s.Subresource)
			}
			d.add(info)
		}
	}
}

// addList adds the document of one version of a group. It lists subresources
// separately, in any order.
func (d *Discovery) addList(gv schema.GroupVersion, list metav1.APIResourceList, preferred bool) {
	infos := map[string]kind.Info{}
	subresources := map[string][]string{}
	for _, r := range list.APIResources {
		if plural, sub, ok := strings.Cut(r.Name, "/"); ok {
			subresources[plural] = append(subresources[plural], sub)
			continue
		}
		infos[r.Name] = kind.Info{
			Group: gv.Group, Version: gv.Version, Plural: r.Name, Kind: r.Kind, Singular: r.SingularName,
			ShortNames: r.ShortNames, Categories: r.Categories, Verbs: r.Verbs,
			Namespaced: r.Namespaced, Preferred: preferred,
		}
	}
	for _, plural := range slices.Sorted(maps.Keys(infos)) {
		info := infos[plural]
		info.Subresources = subresources[plural]
		d.add(info)
	}
}

func (d *Discovery) add(info kind.Info) {
	if info.Kind == "" || info.Plural == "" {
		return
	}
	if info.Singular == "" {
		info.Singular = strings.ToLower(info.Kind)
	}
	d.Resources = append(d.Resources, info)
}
