package gopftest

import (
	"errors"
	"net/http"
	"strings"
)

// route is a parsed URL of the API. The resource may not exist.
type route struct {
	group, version string
	resource       string // plural
	subresource    string
	namespace      string
	name           string
	verb           string // RBAC verb: get, list, watch, create, update, patch, delete, deletecollection
}

// parseRoute parses the path of an object or a list. It returns false for other paths.
func parseRoute(r *http.Request) (route, bool) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var rt route
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		rt.version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		rt.group, rt.version, parts = parts[1], parts[2], parts[3:]
	default:
		return rt, false
	}
	// /namespaces/x/status is about the namespace, /namespaces/x/pods about pods in it.
	if parts[0] == "namespaces" && len(parts) >= 3 && parts[2] != "status" && parts[2] != "finalize" {
		rt.namespace, parts = parts[1], parts[2:]
	}
	rt.resource, parts = parts[0], parts[1:]
	if len(parts) > 0 {
		rt.name, parts = parts[0], parts[1:]
	}
	rt.subresource = strings.Join(parts, "/")
	rt.verb = verbOf(r, rt.name)
	return rt, true
}

func verbOf(r *http.Request, name string) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		switch watch := r.URL.Query().Get("watch"); {
		case name != "":
			return "get" // with a name, the parameter is ignored
		case watch == "1" || watch == "true":
			return "watch"
		default:
			return "list"
		}
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if name == "" {
			return "deletecollection"
		}
		return "delete"
	default:
		return strings.ToLower(r.Method)
	}
}

// errNoSuchPath is the error for a path where nothing is served.
var errNoSuchPath = errors.New("404 page not found")

// scope resolves the route.
func (c *Cluster) scope(rt route) (*scope, error) {
	res, ok := c.kinds.find(func(res *resource) bool { return res.Group == rt.group && res.Plural == rt.resource })
	if !ok || !res.Namespaced && rt.namespace != "" {
		return nil, errNoSuchPath
	}
	version, ok := res.version(rt.version)
	if !ok {
		return nil, errNoSuchPath
	}
	s := &scope{cluster: c, resource: res, version: version, namespace: rt.namespace, name: rt.name, subresource: rt.subresource}
	if rt.subresource != "" && !(rt.subresource == "status" && version.status || rt.subresource == "scale" && version.scale != nil) {
		if res.custom() {
			return nil, s.notFound()
		}
		return nil, errNoSuchPath
	}
	if res.Namespaced && rt.namespace == "" && (rt.name != "" || rt.verb == "create") {
		return nil, errNoSuchPath
	}
	return s, nil
}
