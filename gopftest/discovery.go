package gopftest

import (
	"net/http"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// aggregatedType returns the media type of aggregated discovery.
func aggregatedType(version string) string {
	return mediaJSON + ";g=apidiscovery.k8s.io;v=" + version + ";as=APIGroupDiscoveryList"
}

// serveOther serves the endpoints that are not about objects: discovery, schemas, version
// and health.
func (x *exchange) serveOther() {
	if x.r.Method != http.MethodGet && x.r.Method != http.MethodHead {
		http.NotFound(x.w, x.r)
		return
	}
	parts := strings.Split(strings.Trim(x.r.URL.Path, "/"), "/")
	switch {
	case slices.Contains([]string{"healthz", "livez", "readyz"}, parts[0]):
		x.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		x.w.WriteHeader(http.StatusOK)
		_, _ = x.w.Write([]byte("ok"))
	case len(parts) > 1 && parts[0] == "openapi" && parts[1] == "v3":
		x.serveOpenAPI(parts[2:])
	case parts[0] == "version":
		x.write(http.StatusOK, encode(x.version()))
	case len(parts) == 1 && (parts[0] == "api" || parts[0] == "apis"):
		x.serveGroups(parts[0] == "api")
	case len(parts) == 2 && parts[0] == "api":
		x.serveResources(schema.GroupVersion{Version: parts[1]})
	case len(parts) == 2 && parts[0] == "apis":
		if g := x.group(parts[1]); g != nil {
			g.Kind, g.APIVersion = "APIGroup", "v1"
			x.write(http.StatusOK, encode(g))
			return
		}
		http.NotFound(x.w, x.r)
	case len(parts) == 3 && parts[0] == "apis":
		x.serveResources(schema.GroupVersion{Group: parts[1], Version: parts[2]})
	default:
		http.NotFound(x.w, x.r)
	}
}

// version returns the response of /version.
func (c *Cluster) version() version.Info {
	minor, git := c.gitVersion()
	return version.Info{Major: "1", Minor: minor, GitVersion: git, Platform: "linux/amd64"}
}

// serveGroups serves /api and /apis, in the form that the client prefers.
func (x *exchange) serveGroups(core bool) {
	params, ok := acceptable(x.r, func(p map[string]string) bool {
		return p["as"] == "" && p["g"] == "" && p["v"] == "" ||
			p["as"] == "APIGroupDiscoveryList" && p["g"] == apidiscoveryv2.GroupName && x.discoveryVersion(p["v"])
	})
	switch {
	case !ok:
		x.fail(errNotAcceptable(mediaJSON))
	case params["as"] != "":
		groups := x.aggregated(core)
		groups.APIVersion = apidiscoveryv2.GroupName + "/" + params["v"]
		x.writeAs(aggregatedType(params["v"]), http.StatusOK, encode(groups))
	case core:
		x.write(http.StatusOK, encode(metav1.APIVersions{
			TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"},
			ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: x.r.Host}},
		}))
	default:
		list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
		for _, name := range x.groupNames(false) {
			list.Groups = append(list.Groups, *x.group(name))
		}
		x.write(http.StatusOK, encode(list))
	}
}

// groupNames returns the core group, or all other groups.
func (c *Cluster) groupNames(core bool) []string {
	var names []string
	for _, res := range c.kinds.all() {
		if (res.Group == "") == core && !slices.Contains(names, res.Group) {
			names = append(names, res.Group)
		}
	}
	return names
}

// versionsOf returns the versions of a group, the preferred version first.
func (c *Cluster) versionsOf(group string) []string {
	var names []string
	for _, res := range c.kinds.all() {
		for _, v := range res.versions {
			if res.Group == group && !slices.Contains(names, v.name) {
				names = append(names, v.name)
			}
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return -version.CompareKubeAwareVersionStrings(a, b) })
	return names
}

// group returns the description of a group. nil means that the group does not exist.
func (c *Cluster) group(name string) *metav1.APIGroup {
	g := &metav1.APIGroup{Name: name}
	for _, v := range c.versionsOf(name) {
		g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{
			GroupVersion: schema.GroupVersion{Group: name, Version: v}.String(), Version: v,
		})
	}
	if len(g.Versions) == 0 || name == "" {
		return nil
	}
	g.PreferredVersion = g.Versions[0]
	return g
}

// serveResources lists the resources in one version of a group.
func (x *exchange) serveResources(gv schema.GroupVersion) {
	list := metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String(), APIResources: []metav1.APIResource{},
	}
	for _, res := range x.kinds.all() {
		v, ok := res.version(gv.Version)
		if !ok || res.Group != gv.Group {
			continue
		}
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: res.Plural, SingularName: res.Singular, Kind: res.Kind.Kind, Namespaced: res.Namespaced,
			ShortNames: res.ShortNames, Categories: res.Categories, Verbs: res.verbs(),
		})
		if v.status {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: res.Plural + "/status", Kind: res.Kind.Kind, Namespaced: res.Namespaced, Verbs: statusVerbs(),
			})
		}
		if v.scale != nil {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: res.Plural + "/scale", Group: "autoscaling", Version: "v1", Kind: "Scale", Namespaced: res.Namespaced, Verbs: statusVerbs(),
			})
		}
	}
	if len(list.APIResources) == 0 {
		http.NotFound(x.w, x.r)
		return
	}
	x.write(http.StatusOK, encode(list))
}

// aggregated returns aggregated discovery of the core group, or of all other groups.
func (c *Cluster) aggregated(core bool) *apidiscoveryv2.APIGroupDiscoveryList {
	list := &apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: apidiscoveryv2.SchemeGroupVersion.String()},
		Items:    []apidiscoveryv2.APIGroupDiscovery{},
	}
	for _, name := range c.groupNames(core) {
		g := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, version := range c.versionsOf(name) {
			v := apidiscoveryv2.APIVersionDiscovery{Version: version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
			for _, res := range c.kinds.all() {
				if served, ok := res.version(version); ok && res.Group == name {
					v.Resources = append(v.Resources, res.aggregated(served))
				}
			}
			g.Versions = append(g.Versions, v)
		}
		list.Items = append(list.Items, g)
	}
	return list
}

func (r *resource) aggregated(v *servedVersion) apidiscoveryv2.APIResourceDiscovery {
	kind := &metav1.GroupVersionKind{Group: r.Group, Version: v.name, Kind: r.Kind.Kind}
	d := apidiscoveryv2.APIResourceDiscovery{
		Resource: r.Plural, ResponseKind: kind, Scope: apidiscoveryv2.ScopeCluster, SingularResource: r.Singular,
		Verbs: r.verbs(), ShortNames: r.ShortNames, Categories: r.Categories,
	}
	if r.Namespaced {
		d.Scope = apidiscoveryv2.ScopeNamespace
	}
	if v.status {
		d.Subresources = []apidiscoveryv2.APISubresourceDiscovery{{Subresource: "status", ResponseKind: kind, Verbs: statusVerbs()}}
	}
	if v.scale != nil {
		d.Subresources = append(d.Subresources, apidiscoveryv2.APISubresourceDiscovery{
			Subresource: "scale", ResponseKind: &metav1.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}, Verbs: statusVerbs(),
		})
	}
	return d
}

// verbs returns the verbs of the resource for discovery. While its definition is being
// deleted, discovery omits the verbs for writing, although writes still work.
func (r *resource) verbs() []string {
	if r.terminating {
		return []string{"delete", "deletecollection", "get", "list", "watch"}
	}
	return []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
}

func statusVerbs() []string { return []string{"get", "patch", "update"} }
