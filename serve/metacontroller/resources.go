package metacontroller

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/discovery"
)

// resource is a resource of the cluster.
type resource struct {
	gvr              schema.GroupVersionResource
	apiVersion, kind string
	namespaced       bool
	status           bool // has the subresource
}

// key returns the name of the resource's kind in requests.
func (r resource) key() string { return kindKey(r.apiVersion, r.kind) }

// revisions is the resource of ControllerRevisions.
var revisions = schema.GroupVersionResource{Group: Group, Version: Version, Resource: "controllerrevisions"}

// Allowed reports whether controllers may name a resource. The entries are "PLURAL.GROUP",
// "PLURAL" for the core group, "*.GROUP", or "*". No entries allow everything.
func Allowed(entries []string, group, plural string) bool {
	name := plural
	if group != "" {
		name += "." + group
	}
	return len(entries) == 0 || slices.ContainsFunc(entries, func(e string) bool {
		return e == "*" || e == name || group != "" && e == "*."+group
	})
}

// resources finds resources by name.
type resources struct {
	discovery discovery.DiscoveryInterface
	allow     []string
	age       time.Duration // of known lists

	mu    sync.Mutex
	known map[string]group
}

type group struct {
	list []metav1.APIResource
	read time.Time
}

// byName returns the resource with a plural name.
func (r *resources) byName(apiVersion, plural string) (resource, error) {
	found, err := r.find(apiVersion, func(a metav1.APIResource) bool { return a.Name == plural && plural != "" })
	if err == nil && found.kind == "" {
		err = fmt.Errorf("discovery: can't find resource %s in apiVersion %s", plural, apiVersion)
	}
	return found, err
}

// byKind returns the resource of a kind.
func (r *resources) byKind(apiVersion, kind string) (resource, error) {
	found, err := r.find(apiVersion, func(a metav1.APIResource) bool { return a.Kind == kind && !strings.Contains(a.Name, "/") })
	if err == nil && found.kind == "" {
		err = fmt.Errorf("discovery: can't find kind %s in apiVersion %s", kind, apiVersion)
	}
	return found, err
}

// groupVersion reads an apiVersion. A hook may return any text, and the text becomes a part of paths
// of requests. So the group must be a DNS name and the version a DNS label.
func groupVersion(apiVersion string) (schema.GroupVersion, error) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || gv.Empty() {
		return gv, err
	}
	problems := validation.IsDNS1035Label(gv.Version)
	if strings.Contains(apiVersion, "/") {
		problems = append(problems, validation.IsDNS1123Subdomain(gv.Group)...)
	}
	if len(problems) > 0 {
		return schema.GroupVersion{}, fmt.Errorf("discovery: %.100q is no valid apiVersion: %s", apiVersion, problems[0])
	}
	return gv, nil
}

// find returns the resource that matches. Its kind is empty if there is none.
func (r *resources) find(apiVersion string, matches func(metav1.APIResource) bool) (found resource, err error) {
	gv, err := groupVersion(apiVersion)
	if err != nil || gv.Empty() {
		return found, err
	}
	list, fresh, err := r.list(apiVersion, false)
	if err != nil {
		return found, err
	}
	i := slices.IndexFunc(list, matches)
	if i < 0 && !fresh {
		if list, _, err = r.list(apiVersion, true); err != nil {
			return found, err
		}
		i = slices.IndexFunc(list, matches)
	}
	if i < 0 {
		return found, nil
	}
	a := list[i]
	if !Allowed(r.allow, gv.Group, a.Name) {
		return found, fmt.Errorf("the resource %s in apiVersion %s is not among the kinds of --allow-kinds", a.Name, apiVersion)
	}
	if len(a.Verbs) > 0 && !(slices.Contains(a.Verbs, "list") && slices.Contains(a.Verbs, "watch")) {
		return found, fmt.Errorf("the resource %s in apiVersion %s cannot be listed and watched", a.Name, apiVersion) // its sync would wait forever
	}
	return resource{
		gvr: gv.WithResource(a.Name), apiVersion: apiVersion, kind: a.Kind, namespaced: a.Namespaced,
		status: slices.ContainsFunc(list, func(s metav1.APIResource) bool { return s.Name == a.Name+"/status" }),
	}, nil
}

// list returns the resources of a version. fresh reports that the server has just sent them.
func (r *resources) list(apiVersion string, again bool) (list []metav1.APIResource, fresh bool, err error) {
	r.mu.Lock()
	g, ok := r.known[apiVersion]
	r.mu.Unlock()
	if ok && !again && time.Since(g.read) < r.age {
		return g.list, false, nil
	}
	answer, err := r.discovery.ServerResourcesForGroupVersion(apiVersion)
	switch {
	case apierrors.IsNotFound(err):
		return nil, true, nil
	case err != nil:
		return nil, false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[apiVersion] = group{answer.APIResources, time.Now()}
	return answer.APIResources, true, nil
}
